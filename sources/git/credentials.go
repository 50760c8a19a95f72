package git

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/fleetling/fleetling/sources"
)

// maxSecretBytes is what a Kubernetes Secret may hold.
const maxSecretBytes = 1 << 20

// secrets is what a credentials folder holds.
type secrets struct {
	folder                          string
	username, password, bearerToken string
	ca, certificate, key, identity  []byte
	knownHosts                      []byte
}

func readSecrets(folder string) (secrets, error) {
	s := secrets{folder: folder}
	if folder == "" {
		return s, nil
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return s, err
	}
	defer root.Close()
	for _, f := range []struct {
		name string
		into *[]byte
	}{{"ca.crt", &s.ca}, {"tls.crt", &s.certificate}, {"tls.key", &s.key}, {"identity", &s.identity}, {"known_hosts", &s.knownHosts}} {
		if *f.into, err = readSecret(root, f.name); err != nil {
			return s, err
		}
	}
	for _, f := range []struct {
		name string
		into *string
	}{{"username", &s.username}, {"password", &s.password}, {"bearerToken", &s.bearerToken}} {
		if *f.into, err = readLine(root, f.name); err != nil {
			return s, err
		}
	}
	return s, nil
}

// readSecret gives nil for a file that is not there. A mounted Secret is made of
// links inside the folder, which os.Root follows.
func readSecret(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+1))
	if err == nil && len(data) > maxSecretBytes {
		err = fmt.Errorf("%s: more than 1 MiB", f.Name())
	}
	return data, err
}

// readLine drops the newline at the end that editors and `kubectl create secret
// --from-file` bring.
func readLine(root *os.Root, name string) (string, error) {
	data, err := readSecret(root, name)
	line := string(bytes.TrimRight(data, "\r\n"))
	if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", fmt.Errorf("%s: must be one line without control characters", filepath.Join(root.Name(), name))
	}
	return line, err
}

// checkSecrets says whether what is in the folder fits the URL.
func (e *endpoint) checkSecrets() error {
	switch e.url.Scheme {
	case "ssh":
		_, _, err := e.sshKeys()
		return err
	case "https":
		if err := e.checkLogin(); err != nil {
			return err
		}
		_, err := e.tlsConfig()
		return err
	default:
		if s := e.secrets; s.username+s.password+s.bearerToken != "" || s.key != nil {
			return e.fail(sources.AuthenticationFailed, nil, "credentials are never sent over plain http: use https://, or name no credentials")
		}
		return nil
	}
}

func (e *endpoint) checkLogin() error {
	s := e.secrets
	switch {
	case s.bearerToken != "" && s.username+s.password != "":
		return e.fail(sources.AuthenticationFailed, nil, "the credentials folder holds bearerToken and username or password: keep one of the two ways")
	case (s.username == "") != (s.password == ""):
		return e.fail(sources.AuthenticationFailed, nil, "the credentials folder must hold both username and password, or neither")
	case strings.Contains(s.username, ":"):
		return e.fail(sources.AuthenticationFailed, nil, "the file username must not hold a colon (RFC 7617)")
	}
	return nil
}

// tlsConfig adds ca.crt to the certificates of the system, as Flux does.
func (e *endpoint) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	s := e.secrets
	if s.ca != nil {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool() // an image without certificates is no reason to refuse ours
		}
		if !pool.AppendCertsFromPEM(s.ca) {
			return nil, e.fail(sources.CertificateInvalid, nil, "the file ca.crt of the credentials folder holds no PEM certificate")
		}
		config.RootCAs = pool
	}
	if (s.certificate == nil) != (s.key == nil) {
		return nil, e.fail(sources.CertificateInvalid, nil, "the credentials folder must hold both tls.crt and tls.key, or neither")
	}
	if s.certificate != nil {
		// The error may say what stands in the key file: it is not passed on.
		pair, err := tls.X509KeyPair(s.certificate, s.key)
		if err != nil {
			return nil, e.fail(sources.CertificateInvalid, nil, "the files tls.crt and tls.key of the credentials folder are not a PEM certificate and its key")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// sshKeys gives our key and the host keys that we accept.
func (e *endpoint) sshKeys() (ssh.Signer, *knownhosts.HostKeyDB, error) {
	s := e.secrets
	if s.knownHosts == nil {
		return nil, nil, e.fail(sources.HostKeyMismatch, nil, "the credentials folder must hold known_hosts: put the output of `ssh-keyscan %s` there, once compared with what the server's owner publishes", e.url.Hostname())
	}
	hosts, err := knownhosts.NewDB(filepath.Join(s.folder, "known_hosts"))
	if err != nil {
		return nil, nil, e.fail(sources.HostKeyMismatch, err, "the file known_hosts of the credentials folder can't be read")
	}
	if s.identity == nil {
		return nil, nil, e.fail(sources.AuthenticationFailed, nil, "the credentials folder must hold identity, an OpenSSH private key")
	}
	// The error may say what stands in the key file: it is not passed on.
	signer, err := ssh.ParsePrivateKey(s.identity)
	if _, locked := errors.AsType[*ssh.PassphraseMissingError](err); locked && s.password != "" {
		signer, err = ssh.ParsePrivateKeyWithPassphrase(s.identity, []byte(s.password))
	}
	if err != nil {
		return nil, nil, e.fail(sources.AuthenticationFailed, nil, "the file identity of the credentials folder is not a private key that can be read (a passphrase stands in the file password)")
	}
	return signer, hosts, nil
}
