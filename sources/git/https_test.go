package git_test

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/gittest"
)

// serveTLS serves over https, and gives a request that trusts the server and
// brings files besides.
func serveTLS(t *testing.T, repo *gittest.Repo, options gittest.HTTPOptions, files map[string]string) (*gittest.HTTPServer, git.Request) {
	t.Helper()
	options.TLS = true
	s := gittest.ServeHTTP(t, repo.Dir, options)
	r := request(t, s.URL)
	r.Credentials = credentials(t, with(files, "ca.crt", string(s.CA())))
	return s, r
}

func TestHTTPSLogin(t *testing.T) {
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+canary))
	for name, test := range map[string]struct {
		options gittest.HTTPOptions
		files   map[string]string
		header  string         // what the server got with each request
		reason  sources.Reason // "" is in
		words   string
	}{
		"basic":                            {gittest.HTTPOptions{Username: "u", Password: canary}, map[string]string{"username": "u", "password": canary}, basic, "", ""},
		"basic with newlines at the end":   {gittest.HTTPOptions{Username: "u", Password: canary}, map[string]string{"username": "u\n", "password": canary + "\r\n"}, basic, "", ""},
		"bearer":                           {gittest.HTTPOptions{BearerToken: canary}, map[string]string{"bearerToken": canary}, "Bearer " + canary, "", ""},
		"nothing where something is asked": {gittest.HTTPOptions{Username: "u", Password: "x"}, nil, "", sources.AuthenticationFailed, "asks for credentials (401)"},
		"a wrong password":                 {gittest.HTTPOptions{Username: "u", Password: "x"}, map[string]string{"username": "u", "password": canary}, basic, sources.AuthenticationFailed, "refused the credentials (401)"},
		"a wrong token":                    {gittest.HTTPOptions{BearerToken: "x"}, map[string]string{"bearerToken": canary}, "Bearer " + canary, sources.AuthenticationFailed, "refused the credentials (401)"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := seeded(t)
			s, r := serveTLS(t, repo, test.options, test.files)
			if test.reason == "" {
				assert.Equal(t, repo.Head(), fetch(t, r).Head)
				assert.Len(t, s.Requests(), 2)
			} else {
				err := refusal(t, r, test.reason, test.words)
				assert.NotContains(t, err.Error(), canary)
				assert.NotContains(t, err.Error(), "the body of an answer")
				assert.Len(t, s.Requests(), 1, "asked once")
			}
			for _, got := range s.Requests() {
				assert.Equal(t, test.header, got.Authorization)
			}
		})
	}
}

func TestHTTPSStatusesHaveTheirReason(t *testing.T) {
	repo := seeded(t)
	s, r := serveTLS(t, repo, gittest.HTTPOptions{Username: "u", Password: canary}, map[string]string{"username": "u", "password": canary})
	head := fetch(t, r).Head
	for status, test := range map[int]struct {
		reason sources.Reason
		words  string
	}{
		http.StatusForbidden:           {sources.AuthenticationFailed, "refused the credentials (403)"},
		http.StatusNotFound:            {sources.Unreachable, "no such repository (404)"},
		http.StatusInternalServerError: {sources.Unreachable, "answered 500"},
		http.StatusTooManyRequests:     {sources.Unreachable, "answered 429"},
		http.StatusNotModified:         {sources.Unreachable, "answered 304"},
		http.StatusNoContent:           {sources.Unreachable, "answered 204"},
	} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			s.SetStatus(status)
			err := refusal(t, r, test.reason, test.words, "https://"+s.Address()+"/fleet.git")
			assert.NotContains(t, err.Error(), canary)
			assert.NotContains(t, err.Error(), "the body of an answer")
			whole(t, r.Dir, head)
		})
	}
	s.SetStatus(0)
	fetch(t, r)
}

func TestHTTPSStatusOfTheSecondRequestHasItsReason(t *testing.T) {
	repo := seeded(t)
	s, r := serveTLS(t, repo, gittest.HTTPOptions{}, nil)
	s.SetBefore(func(req *http.Request) {
		if req.Method == http.MethodPost {
			panic(http.ErrAbortHandler)
		}
	})
	refused(t, r, sources.Unreachable)
	s.SetBackend(answer(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost {
			http.Error(w, "the body of an answer", http.StatusForbidden)
			return
		}
		advertise(w, repo.Head(), main)
	}))
	s.SetBefore(nil)
	err := refusal(t, r, sources.AuthenticationFailed, "(403)")
	assert.NotContains(t, err.Error(), "the body of an answer")
}

func TestHTTPSServerIsDownAndComesBack(t *testing.T) {
	repo := seeded(t)
	s, r := serveTLS(t, repo, gittest.HTTPOptions{}, nil)
	head := fetch(t, r).Head
	s.SetDown(true)
	refused(t, r, sources.Unreachable)
	whole(t, r.Dir, head)
	s.SetDown(false)
	fetch(t, r)
}

func TestUnreachable(t *testing.T) {
	closed, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	plain := gittest.ServeHTTP(t, seeded(t).Dir, gittest.HTTPOptions{})
	for name, test := range map[string]struct{ url, words string }{
		"nobody listens":    {"https://" + closed.Addr().String() + "/fleet.git", "connection refused"},
		"no such host":      {"https://fleet.invalid/fleet.git", "check the host in the URL"},
		"TLS to plain http": {"https://" + plain.Address() + "/fleet.git", "speaks plain http"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, request(t, test.url), sources.Unreachable, test.words) })
	}
}

func TestHTTPSTrustsTheSystemAndCACrtOnly(t *testing.T) {
	repo := seeded(t)
	s, r := serveTLS(t, repo, gittest.HTTPOptions{}, nil)
	fetch(t, r)
	other := gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{TLS: true})
	for name, files := range map[string]map[string]string{
		"without ca.crt":               nil,
		"ca.crt of another authority":  {"ca.crt": string(other.CA())},
		"credentials are not sent out": {"ca.crt": string(other.CA()), "username": "u", "password": canary},
	} {
		t.Run(name, func(t *testing.T) {
			s.Forget()
			r.Credentials = credentials(t, files)
			refused(t, r, sources.CertificateInvalid, "ca.crt", "x509: certificate signed by unknown authority")
			assert.Empty(t, s.Requests())
		})
	}
	t.Run("a certificate for another name", func(t *testing.T) {
		s, r := serveTLS(t, repo, gittest.HTTPOptions{Host: "git.test"}, nil)
		r.URL = "https://" + s.Address() + "/fleet.git"
		refused(t, r, sources.CertificateInvalid, "127.0.0.1")
	})
}

func TestHTTPSRefusesOldTLS(t *testing.T) {
	pair, err := tls.X509KeyPair(gittest.ServeHTTP(t, seeded(t).Dir, gittest.HTTPOptions{TLS: true}).ClientCertificate(t))
	require.NoError(t, err)
	plain, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener := tls.NewListener(plain, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	server := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		assert.NoError(t, server.Close())
		assert.ErrorIs(t, <-done, http.ErrServerClosed)
	})
	refused(t, request(t, "https://"+listener.Addr().String()+"/fleet.git"), sources.Unreachable, "1.2", "protocol version")
}

func TestHTTPSClientCertificate(t *testing.T) {
	repo := seeded(t)
	s, r := serveTLS(t, repo, gittest.HTTPOptions{ClientCertificate: true}, nil)
	refused(t, r, sources.AuthenticationFailed, "client certificate", "tls.crt")

	certificate, key := s.ClientCertificate(t)
	r.Credentials = credentials(t, map[string]string{"ca.crt": string(s.CA()), "tls.crt": string(certificate), "tls.key": string(key)})
	assert.Equal(t, repo.Head(), fetch(t, r).Head)

	other := gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{TLS: true})
	certificate, key = other.ClientCertificate(t)
	r.Credentials = credentials(t, map[string]string{"ca.crt": string(s.CA()), "tls.crt": string(certificate), "tls.key": string(key)})
	refused(t, r, sources.AuthenticationFailed, "client certificate")
}

func TestHTTPSProxy(t *testing.T) {
	repo := seeded(t)
	s, r := serveTLS(t, repo, gittest.HTTPOptions{Host: "git.test", Username: "u", Password: canary}, map[string]string{"username": "u", "password": canary})
	name := strings.TrimSuffix(strings.TrimPrefix(s.URL, "https://"), "/fleet.git")
	proxy := gittest.Proxy(t, map[string]string{name: s.Address()})
	r.Proxy.HTTPSProxy = strings.Replace(proxy.URL, "http://", "http://proxy:"+canary+"@", 1)
	assert.Equal(t, repo.Head(), fetch(t, r).Head)
	assert.Contains(t, proxy.Connects(), name)

	t.Run("without a scheme", func(t *testing.T) {
		r := r
		before := len(proxy.Connects())
		r.Proxy.HTTPSProxy = strings.TrimPrefix(proxy.URL, "http://")
		fetch(t, r)
		assert.Greater(t, len(proxy.Connects()), before)
	})
	t.Run("NO_PROXY", func(t *testing.T) {
		r := r
		before := len(proxy.Connects())
		r.Proxy.NoProxy = "git.test"
		refused(t, r, sources.Unreachable, "check the host in the URL")
		assert.Len(t, proxy.Connects(), before)
	})
	t.Run("a proxy that wants a login", func(t *testing.T) {
		proxy.SetStatus(http.StatusProxyAuthRequired)
		err := refusal(t, r, sources.AuthenticationFailed, "proxy", "(407)")
		assert.NotContains(t, err.Error(), canary)
	})
	t.Run("a proxy that forbids", func(t *testing.T) {
		proxy.SetStatus(http.StatusForbidden)
		err := refusal(t, r, sources.Unreachable, "the proxy "+strings.TrimPrefix(proxy.URL, "http://")+" answered 403")
		assert.NotContains(t, err.Error(), canary)
	})
	t.Run("a proxy that is no URL", func(t *testing.T) {
		for _, proxy := range []string{"http://proxy:" + canary + "@h:port", "http://proxy:" + canary + "@h\x7f", "ftp://" + canary + ":1", "http://"} {
			r := r
			r.Proxy.HTTPSProxy = proxy
			err := refusal(t, r, sources.Unreachable, "HTTPS_PROXY")
			assert.NotContains(t, err.Error(), canary)
		}
	})
	t.Run("a proxy that is not there", func(t *testing.T) {
		r := r
		r.Proxy.HTTPSProxy = "http://proxy:" + canary + "@127.0.0.1:1"
		err := refusal(t, r, sources.Unreachable, "connection refused")
		assert.NotContains(t, err.Error(), canary)
	})
}

func TestHTTPSProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	proxy := gittest.Proxy(t, nil)
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	r := request(t, "https://fleet.invalid/fleet.git")
	refused(t, r, sources.Unreachable)
	s := gittest.ServeSSH(t, seeded(t).Dir, gittest.SSHOptions{})
	fetch(t, sshRequest(t, s))
	assert.Empty(t, proxy.Connects())
}

func TestHTTPSRedirects(t *testing.T) {
	repo := seeded(t)
	other, _ := serveTLS(t, repo, gittest.HTTPOptions{}, nil)
	plain := gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{})
	s, r := serveTLS(t, repo, gittest.HTTPOptions{}, map[string]string{"username": "u", "password": canary})
	old := func(target string, methods ...string) func(*http.Request) string {
		return func(req *http.Request) string {
			if rest, ok := strings.CutPrefix(req.URL.RequestURI(), "/old.git"); ok && strings.Contains(strings.Join(methods, " "), req.Method) {
				return target + rest
			}
			return ""
		}
	}
	to := func(target string) func(*http.Request) string { return func(*http.Request) string { return target } }
	for name, test := range map[string]struct {
		path     string
		redirect func(*http.Request) string
		words    string // "" is followed
	}{
		"to another path of the same origin":   {"/old.git", old("/fleet.git", "GET"), ""},
		"the same, written out":                {"/old.git", old(s.URL, "GET"), ""},
		"to another host":                      {"/old.git", old(other.URL, "GET"), other.Address()},
		"to another host, answering the pack":  {"/fleet.git", post(other.URL + "/git-upload-pack"), other.Address()},
		"to the same path, answering the pack": {"/fleet.git", post(s.URL + "/info/refs"), s.Address()},
		"to plain http":                        {"/old.git", old(plain.URL, "GET"), "redirects to http"},
		"to a login page":                      {"/old.git", to("/login?return_to=" + canary), s.Address()},
		"to a file":                            {"/old.git", to("file:///etc/passwd/info/refs"), "redirects to file"},
		"to the same name with a user":         {"/old.git", old("https://"+canary+"@"+other.Address()+"/fleet.git", "GET"), other.Address()},
	} {
		t.Run(name, func(t *testing.T) {
			s.SetRedirect(test.redirect)
			r := request(t, strings.TrimSuffix(s.URL, "/fleet.git")+test.path)
			r.Credentials = credentials(t, map[string]string{"ca.crt": string(s.CA()) + string(other.CA()), "username": "u", "password": canary})
			if test.words == "" {
				assert.Equal(t, repo.Head(), fetch(t, r).Head)
			} else {
				err := refusal(t, r, sources.RedirectRefused, test.words, "configured")
				assert.NotContains(t, err.Error(), canary)
			}
			assert.Empty(t, other.Requests(), "no request, no credential")
			assert.Empty(t, plain.Requests())
		})
	}
	t.Run("in a circle", func(t *testing.T) {
		s.SetRedirect(to("/fleet.git/info/refs?service=git-upload-pack"))
		refused(t, r, sources.Unreachable)
	})
}

func TestCredentialsAreBoundToTheOrigin(t *testing.T) {
	var sent []string
	next := roundTrip(func(r *http.Request) (*http.Response, error) {
		sent = append(sent, r.URL.String()+" "+r.Header.Get("Authorization"))
		return nil, errors.New("not sent on")
	})
	transport := git.Origin(git.Remote{
		URL: "https://git.example.com/fleet.git", Branch: main, Timeout: time.Second, Credentials: credentials(t, map[string]string{"bearerToken": canary}),
	}, next)
	for _, url := range []string{
		"https://git.example.com/fleet.git", "https://GIT.example.com:443/other", "http://git.example.com/fleet.git", "https://git.example.com:8443/fleet.git",
		"https://git.example.com.evil.example/fleet.git", "https://evil.example/git.example.com", "https://git.example.com@evil.example/",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		_, err = transport.RoundTrip(r)
		require.Error(t, err)
		assert.Empty(t, r.Header, "the request is not changed")
	}
	assert.Equal(t, []string{"https://git.example.com/fleet.git Bearer " + canary, "https://GIT.example.com:443/other Bearer " + canary}, sent)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func post(target string) func(*http.Request) string {
	return func(req *http.Request) string {
		if req.Method == http.MethodPost {
			return target
		}
		return ""
	}
}

func TestHTTPSAnswersThatAreNotGit(t *testing.T) {
	repo := seeded(t)
	s, r := serveTLS(t, repo, gittest.HTTPOptions{}, nil)
	for name, backend := range map[string]answer{
		"a login page":                 func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>login</html>")) },
		"a server without the service": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/plain") },
	} {
		t.Run(name, func(t *testing.T) {
			s.SetBackend(backend)
			s.Forget()
			err := refusal(t, r, sources.Unreachable, "not git's smart http protocol")
			assert.NotContains(t, err.Error(), "html")
			assert.Len(t, s.Requests(), 1)
		})
	}
}

// answer is an http.Handler of our own in place of git.
type answer func(http.ResponseWriter, *http.Request)

func (a answer) ServeHTTP(w http.ResponseWriter, r *http.Request) { a(w, r) }
