package agent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// holderFile is in the data folder, which outlives a restarted container and not
// a Pod.
const holderFile = "holder"

// holderName is this agent's name in the Lease: stable over a restart of the
// process, so that a crash costs no lease time, and another one in another Pod.
// The host's name alone is not: Pods on the node's network have the node's, and
// two of them on one node would both believe that they lead.
func holderName(hostname, dataDir string) (string, error) {
	path := filepath.Join(dataDir, holderFile)
	kept, err := os.ReadFile(path)
	switch {
	case err == nil && len(kept) == len(rand.Text()):
		return hostname + "/" + string(kept), nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("name in the lease: %w", err)
	}
	fresh := rand.Text()
	if err := os.WriteFile(path, []byte(fresh), 0o600); err != nil {
		return "", fmt.Errorf("name in the lease: %w", err)
	}
	return hostname + "/" + fresh, nil
}
