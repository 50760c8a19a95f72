package gittest

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
)

// HTTPProxy is a proxy that knows CONNECT only.
type HTTPProxy struct {
	// URL is for HTTPS_PROXY.
	URL string

	// hosts are the addresses behind names, HOST:PORT -> HOST:PORT.
	hosts   map[string]string
	server  *httptest.Server
	running sync.WaitGroup

	mu       sync.Mutex
	status   int
	connects []string
}

// Proxy starts a proxy until the test ends. hosts gives the address, HOST:PORT,
// behind a HOST:PORT that clients ask for; what is not in it is dialed as asked.
func Proxy(t T, hosts map[string]string) *HTTPProxy {
	t.Helper()
	p := &HTTPProxy{hosts: hosts}
	p.server = httptest.NewServer(p)
	p.URL = p.server.URL
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
		p.running.Wait()
	})
	return p
}

// Connects are the HOST:PORT that clients asked for.
func (p *HTTPProxy) Connects() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.connects)
}

// SetStatus makes the proxy answer everything with code. 0 is to serve again.
func (p *HTTPProxy) SetStatus(code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = code
}

// ServeHTTP is http.Handler's.
func (p *HTTPProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.connects = append(p.connects, r.Host)
	status := p.status
	p.mu.Unlock()
	if status == 0 && r.Method != http.MethodConnect {
		status = http.StatusMethodNotAllowed
	}
	if status != 0 {
		http.Error(w, "the body of an answer", status)
		return
	}
	address := r.Host
	if behind, ok := p.hosts[r.Host]; ok {
		address = behind
	}
	far, err := new(net.Dialer).DialContext(r.Context(), "tcp", address)
	if err != nil {
		http.Error(w, "the body of an answer", http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusOK)
	near, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = far.Close()
		return
	}
	p.running.Go(func() { join(near, far) })
}

// join copies both ways until one side ends.
func join(a, b net.Conn) {
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = a.Close(), b.Close()
		})
	}
	both.Wait()
}
