package git

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/fleetling/fleetling/sources"
)

const (
	maxHeaderBytes = 64 << 10
	// uploadPack and receivePack are the programs, and the services, of git.
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
)

// session is what Fetch needs of a transport. go-git's http session and our ssh
// session are ones.
type session interface {
	AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error)
	UploadPack(context.Context, *packp.UploadPackRequest) (*packp.UploadPackResponse, error)
	Close() error
}

func (e *endpoint) connectHTTP(w *wire) (session, error) {
	client, err := e.httpClient(w, uploadPack)
	if err != nil {
		return nil, err
	}
	return client.NewUploadPackSession(e.transportEndpoint(), nil)
}

// httpClient speaks to one of the two services of git: the other one's answers
// are refused.
func (e *endpoint) httpClient(w *wire, service string) (transport.Transport, error) {
	config, err := e.tlsConfig()
	if err != nil {
		return nil, err
	}
	certificates := config.Certificates
	config.GetClientCertificate = func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		w.certificateAsked.Store(true)
		for _, c := range certificates {
			if asked.SupportsCertificate(&c) == nil {
				return &c, nil
			}
		}
		return new(tls.Certificate), nil // none
	}
	proxy := e.Proxy.ProxyFunc()
	client := &http.Client{Transport: &origin{endpoint: e, service: service, next: &http.Transport{
		Proxy:                  func(req *http.Request) (*url.URL, error) { return proxy(req.URL) },
		DialContext:            w.dial,
		TLSClientConfig:        config,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // what is counted on the wire is what is read
		OnProxyConnectResponse: func(_ context.Context, proxy *url.URL, _ *http.Request, res *http.Response) error {
			return e.judgeProxy(proxy, res)
		},
	}}}
	return githttp.NewClientWithOptions(client, nil), nil
}

func (e *endpoint) transportEndpoint() *transport.Endpoint {
	return &transport.Endpoint{
		Protocol: e.url.Scheme,
		Host:     strings.TrimSuffix(e.url.Host, ":"+e.url.Port()),
		Port:     e.port(),
		Path:     strings.TrimSuffix(e.url.EscapedPath(), "/"),
	}
}

// origin lets requests go to one scheme, host and port only, adds the
// credentials there and nowhere else, and turns answers into our reasons, so
// that no answer's body is ever read for an error text.
type origin struct {
	endpoint *endpoint
	service  string
	next     http.RoundTripper
}

// RoundTrip is not faithful to http.RoundTripper in one point: an answer that is
// no success is an error. http.Client would follow it, go-git would read it.
func (o *origin) RoundTrip(req *http.Request) (*http.Response, error) {
	if !o.owns(req.URL) {
		return nil, o.endpoint.refuseRedirect(req.URL)
	}
	if login := o.endpoint.secrets.authorization(); login != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", login)
	}
	res, err := o.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if err := o.judge(req, res); err != nil {
		_ = res.Body.Close() // the connection goes with it
		return nil, err
	}
	return res, nil
}

func (o *origin) owns(u *url.URL) bool {
	own := o.endpoint.url
	return u.Scheme == own.Scheme && strings.EqualFold(u.Hostname(), own.Hostname()) && portOf(u) == portOf(own)
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return map[string]string{"https": "443", "http": "80"}[u.Scheme]
}

func (o *origin) judge(req *http.Request, res *http.Response) error {
	e := o.endpoint
	switch code := res.StatusCode; {
	case code == http.StatusOK:
		return o.judgeType(req, res)
	case code == http.StatusUnauthorized && e.secrets.authorization() == "":
		return e.fail(sources.AuthenticationFailed, nil, "the server asks for credentials (401): put username and password, or bearerToken, into the credentials folder; some servers answer so where the repository does not exist")
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return e.fail(sources.AuthenticationFailed, nil, "the server refused the credentials (%d): check that they are valid and may %s this repository", code, e.may)
	case code == http.StatusNotFound:
		return e.fail(sources.Unreachable, nil, "the server knows no such repository (404): check the URL, and that the credentials may read it")
	case code >= 300 && code < 400:
		return o.judgeRedirect(req, res)
	default:
		return e.fail(sources.Unreachable, nil, "the server answered %d: look at the server; it is asked again", code)
	}
}

// judgeType keeps login pages and servers without the smart protocol from being
// read as git. git does the same.
func (o *origin) judgeType(req *http.Request, res *http.Response) error {
	want := "application/x-" + o.service + "-advertisement"
	if req.Method == http.MethodPost {
		want = "application/x-" + o.service + "-result"
	}
	if res.Header.Get("Content-Type") != want {
		return o.endpoint.fail(sources.Unreachable, nil, "the answer is not git's smart http protocol: check that the URL is what `git clone` takes, and that no login page or proxy answers instead")
	}
	return nil
}

// judgeRedirect lets the first request be sent to another path of the same
// origin.
func (o *origin) judgeRedirect(req *http.Request, res *http.Response) error {
	target, err := res.Location()
	if err != nil {
		return o.endpoint.fail(sources.Unreachable, nil, "the server answered %d without saying where to", res.StatusCode)
	}
	if req.Method != http.MethodGet || !o.owns(target) || !strings.HasSuffix(target.Path, "/info/refs") {
		return o.endpoint.refuseRedirect(target)
	}
	return nil
}

// refuseRedirect quotes only the host: the rest of the target is the server's.
func (e *endpoint) refuseRedirect(target *url.URL) error {
	return e.fail(sources.RedirectRefused, nil, "the server redirects to %s, %q: redirects to another scheme, host or page are not followed; if that is the right place, write it where this one is configured", target.Scheme, target.Host)
}

// judgeProxy refuses a proxy's answer to CONNECT: net/http has no type for it.
func (e *endpoint) judgeProxy(proxy *url.URL, res *http.Response) error {
	switch res.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusProxyAuthRequired:
		return e.fail(sources.AuthenticationFailed, nil, "the proxy %s asks for credentials (407): write them into HTTPS_PROXY", proxy.Host)
	default:
		return e.fail(sources.Unreachable, nil, "the proxy %s answered %d: it must allow CONNECT to this host, or NO_PROXY must name the host", proxy.Host, res.StatusCode)
	}
}

// authorization is the value of the header, and "" without credentials.
func (s secrets) authorization() string {
	switch {
	case s.bearerToken != "":
		return "Bearer " + s.bearerToken
	case s.username != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(s.username+":"+s.password))
	}
	return ""
}
