package git

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/net/http/httpproxy"

	"github.com/fleetling/fleetling/sources"
)

// Remote is one branch of a remote repository and how to reach it. It is plain
// data: it can cross a process boundary as JSON.
type Remote struct {
	// URL is https://HOST[:PORT]/PATH, ssh://[USER@]HOST[:PORT]/PATH, or, without
	// credentials only, http://HOST[:PORT]/PATH.
	URL string
	// Branch is a full ref name below refs/heads/.
	Branch string
	// Credentials is a folder with the files of Flux's Secrets: username,
	// password, bearerToken, ca.crt, tls.crt, tls.key, identity, known_hosts. Each
	// is optional, other files are ignored. "" is no credentials.
	Credentials string
	// Timeout bounds one Fetch as a whole.
	Timeout time.Duration
	// Limits bound what one Fetch may bring: PackBytes, ObjectBytes, Objects.
	Limits sources.Limits
	// Proxy is used for https and http, never for ssh. The zero value is none.
	Proxy httpproxy.Config
}

// Validate says whether the remote can be used as it is configured, without
// talking to it. It reads the credentials folder. Errors are *sources.Error.
func (r Remote) Validate() error {
	_, err := r.open()
	return err
}

// endpoint is a validated Remote with its credentials read.
type endpoint struct {
	Remote
	doing   string // what an error begins with: "fetch BRANCH"
	may     string // what the credentials must allow: "read", "write"
	url     *url.URL
	secrets secrets
}

func (r Remote) open() (*endpoint, error) {
	return r.openTo("fetch "+r.Branch, "read")
}

func (r Remote) openTo(doing, may string) (*endpoint, error) {
	u, err := parseURL(r.URL)
	if err != nil {
		return nil, &sources.Error{Reason: sources.Unreachable, Err: fmt.Errorf("source URL: %w", err)}
	}
	e := &endpoint{Remote: r, doing: doing, may: may, url: u}
	if err := checkBranch(r.Branch); err != nil {
		return nil, &sources.Error{Reason: sources.BranchNotFound, Err: fmt.Errorf("source branch: %w", err)}
	}
	if r.Timeout <= 0 {
		return nil, &sources.Error{Reason: sources.Unreachable, Err: errors.New("source timeout: must be more than zero")}
	}
	if e.secrets, err = readSecrets(r.Credentials); err != nil {
		return nil, &sources.Error{Reason: sources.AuthenticationFailed, Err: fmt.Errorf("source credentials: %w", err)}
	}
	if err := e.checkProxy(); err != nil {
		return nil, err
	}
	return e, e.checkSecrets()
}

// parseURL never repeats what it was given in an error: a password may stand
// anywhere in a URL that is wrong.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if !strings.Contains(text, "://") {
		if host, path, ok := scpForm(text); ok {
			return nil, fmt.Errorf("the form HOST:PATH is not read: write ssh://USER@%s/%s", host, path)
		}
	}
	if err != nil {
		return nil, errors.New("it is not a URL: write https://HOST/PATH or ssh://USER@HOST/PATH")
	}
	switch u.Scheme {
	case "https", "http", "ssh":
	default:
		return nil, errors.New("its scheme is not known: write https://HOST/PATH or ssh://USER@HOST/PATH")
	}
	if err := checkUser(u); err != nil {
		return nil, err
	}
	if err := checkHost(u); err != nil {
		return nil, err
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, errors.New("it must end with the path: no ? and no #")
	}
	return u, checkPath(u.Path)
}

// scpForm splits [USER@]HOST:PATH.
func scpForm(text string) (host, path string, ok bool) {
	text = text[strings.LastIndex(text, "@")+1:]
	host, path, ok = strings.Cut(text, ":")
	path = strings.TrimPrefix(path, "/")
	return host, path, ok && checkHost(&url.URL{Host: host}) == nil && checkPath("/"+path) == nil
}

func checkUser(u *url.URL) error {
	if u.User == nil {
		return nil
	}
	if u.Scheme != "ssh" {
		return errors.New("it holds a user or a password: put them into the credentials folder, files username and password")
	}
	if _, has := u.User.Password(); has {
		return errors.New("it holds a password: ssh is authenticated by the file identity of the credentials folder")
	}
	if !regexp.MustCompile(`^[A-Za-z0-9._-]+$`).MatchString(u.User.Username()) {
		return errors.New("its user may hold only letters, digits, and . _ -")
	}
	return nil
}

func checkHost(u *url.URL) error {
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); err != nil && !regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`).MatchString(host) {
		return errors.New("its host is neither a name nor an address")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("its port is not a number from 1 to 65535")
		}
	}
	return nil
}

// checkPath keeps out what a shell on the other side could read as more than a
// path, and what would be resolved to another one.
func checkPath(path string) error {
	if !regexp.MustCompile(`^/[A-Za-z0-9 ._~/@+,=:-]*[A-Za-z0-9._~@+,=:-]/?$`).MatchString(path) {
		return errors.New("its path must name a repository; besides letters, digits and spaces only - . _ ~ / @ + , : = may stand in it")
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return errors.New("its path goes by . or .. somewhere")
		}
	}
	return nil
}

func checkBranch(branch string) error {
	name := plumbing.ReferenceName(branch)
	if !name.IsBranch() {
		return fmt.Errorf("%q is not a full ref name: write refs/heads/NAME", branch)
	}
	if err := name.Validate(); err != nil {
		return fmt.Errorf("%q is not a valid ref name", branch)
	}
	return nil
}

// checkProxy refuses what httpproxy would silently take for "no proxy", or for a
// proxy of another name. It does not pass on what is wrong: a password may stand
// in the URL.
func (e *endpoint) checkProxy() error {
	for _, proxy := range []string{e.Proxy.HTTPSProxy, e.Proxy.HTTPProxy} {
		if proxy == "" {
			continue
		}
		if !strings.Contains(proxy, "://") {
			proxy = "http://" + proxy
		}
		if u, err := url.Parse(proxy); err != nil || checkHost(u) != nil || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
			return e.fail(sources.Unreachable, nil, "HTTPS_PROXY or HTTP_PROXY is not the URL of a proxy: write http://HOST:PORT")
		}
	}
	return nil
}

// place is the URL without anything that could be a secret.
func (e *endpoint) place() string {
	return (&url.URL{Scheme: e.url.Scheme, Host: e.url.Host, Path: e.url.Path}).String()
}

// address is HOST:PORT.
func (e *endpoint) address() string {
	return net.JoinHostPort(e.url.Hostname(), strconv.Itoa(e.port()))
}

func (e *endpoint) port() int {
	if port, err := strconv.Atoi(e.url.Port()); err == nil {
		return port
	}
	return map[string]int{"https": 443, "http": 80, "ssh": 22}[e.url.Scheme]
}

// fail makes the error of this remote: what went wrong, where, what to do. A
// cause is only given where its text can hold neither a secret nor what the
// server sent.
func (e *endpoint) fail(reason sources.Reason, cause error, format string, args ...any) error {
	err := fmt.Errorf("%s of %s: %s", e.doing, e.place(), fmt.Sprintf(format, args...))
	if cause != nil {
		err = fmt.Errorf("%w (%w)", err, cause)
	}
	return &sources.Error{Reason: reason, Err: err}
}
