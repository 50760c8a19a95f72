package gittest

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// HTTPOptions say how an HTTPServer is reached. The zero value is plain http on
// 127.0.0.1 for everybody.
type HTTPOptions struct {
	// TLS serves https, with a certificate of the server's own authority.
	TLS bool
	// Host is the name in URL and certificate. "" is 127.0.0.1. Another name is
	// reached through a Proxy that knows it.
	Host string
	// Username and Password are demanded where Username is set.
	Username, Password string
	// BearerToken is demanded where it is set.
	BearerToken string
	// Push lets everybody push who may read.
	Push bool
	// ClientCertificate demands one of the server's own authority.
	ClientCertificate bool
}

// Request is what an HTTPServer was asked.
type Request struct {
	Method, Path, Authorization string
}

// HTTPServer serves one repository by `git http-backend`.
type HTTPServer struct {
	// URL is that of the repository.
	URL string

	options   HTTPOptions
	server    *httptest.Server
	backend   http.Handler
	authority *authority

	mu       sync.Mutex
	status   int
	redirect func(*http.Request) string
	down     bool
	before   func(*http.Request)
	requests []Request
}

const repositoryPath = "/fleet.git"

// ServeHTTP serves the repository in dir, a bare one or a working copy, until
// the test ends.
func ServeHTTP(t T, dir string, options HTTPOptions) *HTTPServer {
	t.Helper()
	programs := strings.TrimSpace(run(t, "", "git", "--exec-path"))
	s := &HTTPServer{options: options, authority: newAuthority(t)}
	s.backend = &cgi.Handler{
		Path: filepath.Join(programs, "git-http-backend"),
		Root: repositoryPath,
		Env: []string{
			"GIT_PROJECT_ROOT=" + gitDir(dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + t.TempDir(),
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.receivepack", "GIT_CONFIG_VALUE_0=" + strconv.FormatBool(options.Push),
		},
		Stderr: io.Discard, Logger: quiet(),
	}
	s.server = httptest.NewUnstartedServer(s)
	s.server.Config.ErrorLog = quiet()
	s.start(t)
	t.Cleanup(s.Close)
	return s
}

func (s *HTTPServer) start(t T) {
	t.Helper()
	host := s.options.Host
	if host == "" {
		host = "127.0.0.1"
	}
	scheme := "http"
	if s.options.TLS {
		scheme = "https"
		s.server.TLS = &tls.Config{Certificates: []tls.Certificate{s.authority.issue(t, host)}, MinVersion: tls.VersionTLS12}
		if s.options.ClientCertificate {
			s.server.TLS.ClientAuth, s.server.TLS.ClientCAs = tls.RequireAndVerifyClientCert, s.authority.pool()
		}
		s.server.StartTLS()
	} else {
		s.server.Start()
	}
	_, port, err := net.SplitHostPort(s.Address())
	if err != nil {
		t.Fatalf("%v", err)
	}
	s.URL = (&url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port), Path: repositoryPath}).String()
}

// Close hangs up on everybody. The end of the test does so too.
func (s *HTTPServer) Close() {
	s.server.CloseClientConnections()
	s.server.Close()
}

// Address is 127.0.0.1:PORT.
func (s *HTTPServer) Address() string { return s.server.Listener.Addr().String() }

// CA is the certificate of the server's authority, as PEM.
func (s *HTTPServer) CA() []byte { return s.authority.certificate }

// ClientCertificate makes a certificate that the server accepts, and its key, as
// PEM.
func (s *HTTPServer) ClientCertificate(t T) (certificate, key []byte) {
	t.Helper()
	return s.authority.issuePEM(t, "client")
}

// SetStatus makes the server answer everything with code. 0 is to serve again.
func (s *HTTPServer) SetStatus(code int) { s.set(func() { s.status = code }) }

// SetDown makes the server hang up without an answer, or serve again.
func (s *HTTPServer) SetDown(down bool) { s.set(func() { s.down = down }) }

// SetPassword demands another password from now on.
func (s *HTTPServer) SetPassword(password string) { s.set(func() { s.options.Password = password }) }

// SetRedirect makes the server redirect each request to what f gives, and serve
// it where that is "". nil is to serve everything again.
func (s *HTTPServer) SetRedirect(f func(*http.Request) string) { s.set(func() { s.redirect = f }) }

// SetBefore makes the server call f before each request is served. The request
// waits for it: a test can act at an exact moment. nil is to stop.
func (s *HTTPServer) SetBefore(f func(*http.Request)) { s.set(func() { s.before = f }) }

// SetBackend serves by another handler than git.
func (s *HTTPServer) SetBackend(h http.Handler) { s.set(func() { s.backend = h }) }

// Requests gives what was asked since the last Forget.
func (s *HTTPServer) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Forget empties Requests.
func (s *HTTPServer) Forget() { s.set(func() { s.requests = nil }) }

func (s *HTTPServer) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// ServeHTTP is http.Handler's.
func (s *HTTPServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.RequestURI(), Authorization: r.Header.Get("Authorization")})
	status, down, redirect, before, backend := s.status, s.down, s.redirect, s.before, s.backend
	allowed := s.options.allow(r)
	s.mu.Unlock()
	if before != nil {
		before(r)
	}
	switch {
	case down:
		panic(http.ErrAbortHandler)
	case status != 0:
		http.Error(w, "the body of an answer "+http.StatusText(status), status)
	case !allowed:
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "the body of an answer", http.StatusUnauthorized)
	default:
		if redirect != nil {
			if target := redirect(r); target != "" {
				http.Redirect(w, r, target, http.StatusFound)
				return
			}
		}
		backend.ServeHTTP(w, r)
	}
}

func (o HTTPOptions) allow(r *http.Request) bool {
	if o.BearerToken != "" {
		return r.Header.Get("Authorization") == "Bearer "+o.BearerToken
	}
	if o.Username == "" {
		return true
	}
	username, password, ok := r.BasicAuth()
	return ok && username == o.Username && password == o.Password
}

// gitDir is the repository that belongs to a working copy, or dir itself.
func gitDir(dir string) string {
	if inside := filepath.Join(dir, ".git"); isDir(inside) {
		return inside
	}
	return dir
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.certificate)
	return pool
}
