package build

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
)

var (
	// ErrNoCAPIManager says that Cluster API's manager has to be built first.
	ErrNoCAPIManager = errors.New("the manager of Cluster API is not built: run `make capi-manager` (10 minutes, once)")
	// ErrNoCAPIProviders says that Cluster API's providers have to be built first.
	ErrNoCAPIProviders = errors.New("the providers of Cluster API are not built: run `make capi-providers` (3 minutes, once)")
)

// CAPIManager is a manager of Cluster API: the core one or a provider's.
type CAPIManager struct {
	// Path is the program.
	Path string
	// Config is the folder config of its sources: crd/bases and webhook.
	Config string
}

// CAPIProviders are the managers beside the core one that make a cluster of
// kubeadm's on machines that are nothing but memory.
type CAPIProviders struct {
	Bootstrap, ControlPlane, Infrastructure CAPIManager
}

// FindCAPIManager gives what BuildCAPIManager has built, or ErrNoCAPIManager.
func FindCAPIManager(ctx context.Context, root string) (CAPIManager, error) {
	manager, err := capi(root, "core").manager(ctx)
	return manager, orNotBuilt(err, ErrNoCAPIManager)
}

// BuildCAPIManager builds Cluster API's core manager where it is not built yet,
// and writes a line about how far it is to progress every few seconds.
func BuildCAPIManager(ctx context.Context, root string, progress io.Writer) (CAPIManager, error) { //nolint:revive // build is the verb here, as find is in FindCAPIManager
	if _, err := capi(root, "core").build(ctx, progress); err != nil {
		return CAPIManager{}, err
	}
	return FindCAPIManager(ctx, root)
}

// FindCAPIProviders gives what BuildCAPIProviders has built, or
// ErrNoCAPIProviders.
func FindCAPIProviders(ctx context.Context, root string) (CAPIProviders, error) {
	var found [3]CAPIManager
	for i, k := range capiProviders(root) {
		var err error
		if found[i], err = k.manager(ctx); err != nil {
			return CAPIProviders{}, orNotBuilt(err, ErrNoCAPIProviders)
		}
	}
	return CAPIProviders{Bootstrap: found[0], ControlPlane: found[1], Infrastructure: found[2]}, nil
}

// BuildCAPIProviders builds the providers where they are not built yet, one after
// the other, and writes a line about how far it is to progress every few seconds.
func BuildCAPIProviders(ctx context.Context, root string, progress io.Writer) (CAPIProviders, error) { //nolint:revive // build is the verb here, as find is in FindCAPIProviders
	for _, k := range capiProviders(root) {
		if _, err := k.build(ctx, progress); err != nil {
			return CAPIProviders{}, err
		}
	}
	return FindCAPIProviders(ctx, root)
}

// capi is a program of Cluster API. One module of ours holds the versions of all.
func capi(root, pkg string) kept {
	return kept{root: root, folder: "capi", name: "capi-" + strings.ReplaceAll(pkg, "/", "-"), tool: "sigs.k8s.io/cluster-api/" + pkg}
}

func capiProviders(root string) [3]kept {
	return [3]kept{capi(root, "bootstrap/kubeadm"), capi(root, "controlplane/kubeadm"), capi(root, "test/infrastructure/docker")}
}

// manager finds the program and the folder of its sources.
func (k kept) manager(ctx context.Context) (CAPIManager, error) {
	path, err := k.find()
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

// orNotBuilt gives an error that says what to run where something is missing.
func orNotBuilt(err, notBuilt error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return notBuilt
	}
	return err
}
