package cluster

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Proxy stands between an agent and its API server, over HTTPS like it. It
// hands on all requests with their credentials, streams included, except
// what its rules say.
type Proxy struct {
	server *httptest.Server

	mu       sync.Mutex
	switches []*Switch
}

// Proxy starts a proxy to the cluster. Whoever starts it closes it.
func (c *Cluster) Proxy() (*Proxy, error) {
	target, err := url.Parse(c.Server())
	if err != nil {
		return nil, fmt.Errorf("proxy of %s: %w", c.name, err)
	}
	// Anonymous: a request has the credentials that it came with, or none.
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(c.Config()))
	if err != nil {
		return nil, fmt.Errorf("proxy of %s: %w", c.name, err)
	}
	p := &Proxy{}
	forward := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      transport,
		ModifyResponse: p.answered,
		// A client of an API server that is away sees a broken connection, no answer.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		// What it would say about the connections that rules break.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	p.server = httptest.NewUnstartedServer(p.handler(forward))
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = forward.ErrorLog
	p.server.StartTLS()
	return p, nil
}

// Kubeconfig gives the same kubeconfig with the proxy as its server.
func (p *Proxy) Kubeconfig(kubeconfig []byte) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, err
	}
	for _, cluster := range config.Clusters {
		cluster.Server = p.server.URL
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	}
	return clientcmd.Write(*config)
}

// On lays down a rule for the requests from now on.
func (p *Proxy) On(rule Rule) *Switch {
	s := &Switch{rule: rule}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.switches = append(p.switches, s)
	return s
}

// Break breaks all connections, watches too. New ones are taken: for an API
// server that stays away, lay down a Rule with Drop first.
func (p *Proxy) Break() { p.server.CloseClientConnections() }

// Close ends the proxy and all connections through it.
func (p *Proxy) Close() {
	// A client that comes back now would keep the server from closing.
	p.On(Rule{Drop: true})
	p.Break()
	p.server.Close()
}

func (p *Proxy) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		taken := p.take(r)
		for _, rule := range taken {
			if rule.before(w, r) {
				return
			}
		}
		next.ServeHTTP(w, r.WithContext(withRules(r.Context(), taken)))
	})
}

// answered runs when the API server has done what was asked and before the
// client learns of it.
func (p *Proxy) answered(response *http.Response) error {
	for _, rule := range rulesOf(response.Request.Context()) {
		if rule.After != nil {
			rule.After(response.Request, response.StatusCode)
		}
	}
	return nil
}

// take gives the rules for a request, in the order they were laid down.
func (p *Proxy) take(r *http.Request) []Rule {
	p.mu.Lock()
	switches := slices.Clone(p.switches)
	p.mu.Unlock()
	var rules []Rule
	for _, s := range switches {
		if s.take(r) {
			rules = append(rules, s.rule)
		}
	}
	return rules
}
