package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fleetling/fleetling/agent/clusterset"
	registrygit "github.com/fleetling/fleetling/discovery/registry/git"
	registrynats "github.com/fleetling/fleetling/discovery/registry/nats"
	"github.com/fleetling/fleetling/sources/git"
)

// carriers opens the carrier that a fleet's registry names.
type carriers struct{ config Config }

func (c carriers) open(registry clusterset.Registry, member string) (clusterset.Carrier, error) {
	if registry.Git != "" {
		return c.git(registry.Git, member)
	}
	return c.nats(registry, member)
}

// nats takes its credentials from files of the names that Secrets have for them.
func (c carriers) nats(registry clusterset.Registry, member string) (clusterset.Carrier, error) {
	options := registrynats.Options{URLs: registry.NATS, Bucket: registry.Bucket, Member: member, Timeout: natsTimeout}
	for name, file := range map[string]*string{
		"nats.creds": &options.CredsFile, "nkey": &options.NKeyFile, "ca.crt": &options.CAFile, "tls.crt": &options.CertFile, "tls.key": &options.KeyFile,
	} {
		path := filepath.Join(c.config.RegistryCredentials, name)
		if _, err := os.Stat(path); err == nil {
			*file = path
		}
	}
	for name, value := range map[string]*string{"username": &options.User, "password": &options.Password} {
		text, err := os.ReadFile(filepath.Join(c.config.RegistryCredentials, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("registry credentials: %w", err)
		}
		*value = strings.TrimSpace(string(text))
	}
	carrier, err := registrynats.Open(options)
	if err != nil {
		return nil, err
	}
	return natsCarrier{carrier}, nil
}

const natsTimeout = 10 * time.Second

// natsCarrier closes without a fault.
type natsCarrier struct{ *registrynats.Carrier }

// Close ends the connection.
func (c natsCarrier) Close() error {
	c.Carrier.Close()
	return nil
}

// How long one exchange may take, and what several members' branches may bring at
// once.
const (
	registryTimeout = 20 * time.Second
	registryBytes   = 32 << 20
	registryObjects = 6000
)

// git shares timeout and proxy with the fleet repository, and neither its folder
// nor its credentials.
func (c carriers) git(url, member string) (clusterset.Carrier, error) {
	remote := c.config.Remote
	remote.URL, remote.Branch, remote.Credentials = url, "", c.credentials()
	remote.Timeout = registryTimeout
	remote.Limits.PackBytes, remote.Limits.Objects = registryBytes, registryObjects
	dir, err := filepath.Abs(filepath.Join(c.config.DataDir, "registry.git"))
	if err != nil {
		return nil, err
	}
	refs, err := git.NewRefs(git.RefsConfig{Remote: remote, Prefix: registrygit.Prefix, Dir: dir, Max: registrygit.MaxMembers})
	if err != nil {
		return nil, err
	}
	carrier, err := registrygit.New(member, refs, time.Now)
	if err != nil {
		return nil, err
	}
	return gitCarrier{carrier}, nil
}

// credentials is "" where there is no such folder: a registry may ask for none.
func (c carriers) credentials() string {
	if _, err := os.Stat(c.config.RegistryCredentials); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return c.config.RegistryCredentials
}

// gitCarrier holds nothing open.
type gitCarrier struct{ *registrygit.Carrier }

// Close does nothing.
func (gitCarrier) Close() error { return nil }
