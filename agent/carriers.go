package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fleetling/fleetling/agent/clusterset"
	registrygit "github.com/fleetling/fleetling/discovery/registry/git"
	"github.com/fleetling/fleetling/sources/git"
)

// carriers opens the carrier that a fleet's registry names.
type carriers struct{ config Config }

func (c carriers) open(registry clusterset.Registry, member string) (clusterset.Carrier, error) {
	if registry.Git != "" {
		return c.git(registry.Git, member)
	}
	return nil, errors.New("registry nats: not there yet")
}

// git shares limits, timeout and proxy with the fleet repository, and neither its
// folder nor its credentials.
func (c carriers) git(url, member string) (clusterset.Carrier, error) {
	remote := c.config.Remote
	remote.URL, remote.Branch, remote.Credentials = url, "", c.credentials()
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
