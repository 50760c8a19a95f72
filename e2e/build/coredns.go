package build

import (
	"context"
	"errors"
	"io"
	"io/fs"
)

// FindCoreDNS gives the path of what BuildCoreDNS has built, or ErrNotBuilt.
func FindCoreDNS(root string) (string, error) {
	path, err := kept{root: root, name: "coredns"}.find()
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNotBuilt
	}
	return path, err
}

// BuildCoreDNS builds CoreDNS where it is not built yet, and writes a line
// about how far it is to progress every few seconds.
func BuildCoreDNS(ctx context.Context, root string, progress io.Writer) (string, error) { //nolint:revive // build is the verb here, as find is in FindCoreDNS
	return kept{root: root, name: "coredns"}.build(ctx, progress)
}
