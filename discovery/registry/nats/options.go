package nats

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
)

const (
	// maxValue bounds a record, a status and a part, in bytes, maxParts the parts
	// of a member, and maxMembers the members.
	maxValue   = 1 << 20
	maxParts   = 5000
	maxMembers = 2000
)

// Options say which bucket, whose side of it, and how to reach it. They are plain
// data; the files are read with every connection.
type Options struct {
	// URLs are tls://HOST:PORT or nats://HOST:PORT, of any servers of the cluster:
	// the others are learned.
	URLs []string
	// Bucket is the name of the KV bucket: letters, digits, - and _.
	Bucket string
	// Member is a DNS label of at most 32 characters.
	Member string
	// Timeout bounds each call, attempts again included.
	Timeout time.Duration
	// CredsFile is a user's JWT and key, as nsc writes them; NKeyFile a user's seed.
	// User and Password are for tls:// only. One of the three, or none.
	CredsFile, NKeyFile string
	User, Password      string
	// CAFile is added for the servers' certificates; CertFile and KeyFile are ours.
	CAFile, CertFile, KeyFile string
}

// Validate says whether the options can be used, without talking to anybody.
func (o Options) Validate() error {
	switch {
	case len(o.URLs) == 0:
		return errors.New("registry: no server: write tls://HOST:PORT")
	case !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(o.Bucket):
		return fmt.Errorf("registry bucket %.80q: may hold only letters, digits, - and _", o.Bucket)
	case !isName(o.Member):
		return fmt.Errorf("registry member %.80q: must be a DNS label of at most 32 characters", o.Member)
	case o.Timeout <= 0:
		return errors.New("registry: the timeout must be more than zero")
	case (o.CertFile == "") != (o.KeyFile == ""):
		return errors.New("registry: a certificate needs its key, and a key its certificate")
	case (o.User == "") != (o.Password == ""):
		return errors.New("registry: a user needs a password, and a password a user")
	}
	ways := 0
	for _, way := range []string{o.CredsFile, o.NKeyFile, o.User} {
		if way != "" {
			ways++
		}
	}
	if ways > 1 {
		return errors.New("registry: credentials file, nkey and user: keep one of them")
	}
	return o.checkURLs()
}

// checkURLs repeats nothing of what is wrong: a password may stand there.
func (o Options) checkURLs() error {
	for i, text := range o.URLs {
		u, err := url.Parse(text)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "tls" && u.Scheme != "nats":
			return fmt.Errorf("registry server %d: it is not tls://HOST:PORT or nats://HOST:PORT", i+1)
		case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "":
			return fmt.Errorf("registry server %d: write scheme, host and port only", i+1)
		case u.Scheme != "tls" && o.User != "":
			return fmt.Errorf("registry server %s: a password is only sent over tls://", u.Host)
		}
	}
	return nil
}

// connect gives a connection that is made, and made again, in the background.
// Nothing is kept to be sent later: what was put then might come after what is put
// now.
func (o Options) connect(onError nats.ErrHandler) (*nats.Conn, error) {
	settings := []nats.Option{
		nats.Name("fleetling " + o.Member),
		nats.CustomInboxPrefix("_INBOX." + o.Member),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1),
		nats.IgnoreAuthErrorAbort(), // credentials are replaced while we run
		nats.CustomReconnectDelay(delay), nats.Timeout(attemptTime),
		nats.PingInterval(5 * time.Second), nats.MaxPingsOutstanding(2),
		nats.ErrorHandler(onError),
	}
	switch {
	case o.CredsFile != "":
		settings = append(settings, nats.UserCredentials(o.CredsFile))
	case o.NKeyFile != "":
		key, err := nats.NkeyOptionFromSeed(o.NKeyFile)
		if err != nil {
			// The error may say what stands in the file: it is not passed on.
			return nil, fmt.Errorf("registry: %s holds no seed of a user nkey that can be read", o.NKeyFile)
		}
		settings = append(settings, key)
	case o.User != "":
		settings = append(settings, nats.UserInfo(o.User, o.Password))
	}
	if o.CAFile != "" {
		settings = append(settings, nats.RootCAs(o.CAFile))
	}
	if o.CertFile != "" {
		settings = append(settings, nats.ClientCert(o.CertFile, o.KeyFile))
	}
	servers := nats.GetDefaultOptions()
	servers.Servers = o.URLs
	for _, set := range settings {
		if err := set(&servers); err != nil {
			return nil, fmt.Errorf("registry: connect: %w", err)
		}
	}
	conn, err := servers.Connect()
	if err != nil {
		return nil, fmt.Errorf("registry: connect: %w", err)
	}
	return conn, nil
}

// delay is nats.go's own between rounds over all servers, which has little jitter:
// a fleet must not come back all at once.
func delay(attempts int) time.Duration {
	b := newBackOff()
	next := b.NextBackOff()
	for range min(attempts, 16) {
		next = b.NextBackOff()
	}
	return next
}

// newBackOff has 50 ms, then half more each time up to 2 s, and half of it more or
// less by chance.
func newBackOff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMultiplier(1.5),
		backoff.WithMaxInterval(2*time.Second), backoff.WithMaxElapsedTime(0),
	)
}

// isName says whether a member can be named so: names go into subjects.
func isName(name string) bool {
	return regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`).MatchString(name)
}
