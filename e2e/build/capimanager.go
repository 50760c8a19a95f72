package build

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
)

// ErrNoCAPIManager says that Cluster API's manager has to be built first.
var ErrNoCAPIManager = errors.New("the manager of Cluster API is not built: run `make capi-manager` (10 minutes, once)")

// CAPIManager is Cluster API's core manager.
type CAPIManager struct {
	// Path is the program.
	Path string
	// Config is the folder config of its sources: crd/bases and webhook.
	Config string
}

func capiManager(root string) kept {
	return kept{root, "capimanager", "sigs.k8s.io/cluster-api/core"}
}

// FindCAPIManager gives what BuildCAPIManager has built, or ErrNoCAPIManager.
func FindCAPIManager(ctx context.Context, root string) (CAPIManager, error) {
	k := capiManager(root)
	path, err := k.find()
	if errors.Is(err, fs.ErrNotExist) {
		return CAPIManager{}, ErrNoCAPIManager
	}
	if err != nil {
		return CAPIManager{}, err
	}
	list := goCommand(ctx, k.dir(), "list", "-f", "{{.Dir}}", k.tool)
	var dir strings.Builder
	list.Stdout = &dir
	if err := run(list, &report{}); err != nil {
		return CAPIManager{}, err
	}
	return CAPIManager{Path: path, Config: filepath.Join(strings.TrimSpace(dir.String()), "config")}, nil
}

// BuildCAPIManager builds Cluster API's core manager where it is not built yet,
// and writes a line about how far it is to progress every few seconds.
func BuildCAPIManager(ctx context.Context, root string, progress io.Writer) (CAPIManager, error) { //nolint:revive // build is the verb here, as find is in FindCAPIManager
	if _, err := capiManager(root).build(ctx, progress); err != nil {
		return CAPIManager{}, err
	}
	return FindCAPIManager(ctx, root)
}
