package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fleetling/fleetling/agent"
	"github.com/fleetling/fleetling/agent/capi"
	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/fleet"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/trust"
)

const maxKeyBytes = 64 << 10

func (f *renderFlags) entries(names []string) (chosen []capi.Entry, leftOut []string, err error) {
	root, err := os.OpenRoot(f.repository)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = root.Close() }()
	read, err := fleet.Read(root.FS())
	if err != nil {
		return nil, nil, err
	}
	f.target.ClusterSet = read.ClusterSet
	entries, err := capi.Entries(root.FS(), read.Clusters)
	if err != nil {
		return nil, nil, err
	}
	return capi.Choose(entries, names)
}

// installed gives the manifests with what this fleet's differ in.
func (f *renderFlags) installed() ([]capi.Object, error) {
	manifests, isFolder, err := f.load()
	if err != nil {
		return nil, fmt.Errorf("--manifests %s: %w; give the folder manifests of a checkout of fleetling, or what `kubectl kustomize` printed", f.manifests, err)
	}
	install := capi.Install{Image: f.image, URL: f.url, Branch: f.branch}
	if f.config != "" {
		if install.Config, err = readBounded(f.config, maxKeyBytes); err != nil {
			return nil, err
		}
	}
	signers := f.signers
	if signers == "" && isFolder {
		signers = filepath.Join(f.repository, "signers")
	}
	if signers != "" {
		if install.Signers, err = readSigners(signers); err != nil {
			return nil, err
		}
	}
	installed, err := install.Into(manifests)
	if err != nil {
		return nil, err
	}
	if err := checkConfig(installed); err != nil {
		return nil, err
	}
	// Credentials come later, and ssh can't be checked without.
	if err := checkRemote(installed, ""); slices.Contains([]sources.Reason{sources.Unreachable, sources.BranchNotFound}, sources.ReasonOf(err)) {
		return nil, err
	}
	return installed, nil
}

// checkConfig asks what the agent will ask of its configuration.
func checkConfig(installed []capi.Object) error {
	text, err := capi.Config(installed)
	if err != nil {
		return err
	}
	if _, err := agent.ParseConfig(text); err != nil {
		return fmt.Errorf("the configuration of the agent: %w", err)
	}
	return nil
}

// checkRemote asks what the agent will ask of where it pulls from.
func checkRemote(installed []capi.Object, credentials string) error {
	url, branch, err := capi.Source(installed)
	if err != nil {
		return err
	}
	remote := git.Remote{URL: url, Branch: branch, Credentials: credentials, Timeout: time.Minute, Limits: sources.DefaultLimits()}
	return remote.Validate()
}

func (f *renderFlags) load() (objects []capi.Object, isFolder bool, err error) {
	info, err := os.Stat(f.manifests)
	if err != nil {
		return nil, false, err
	}
	if !info.IsDir() {
		objects, err = readObjects([]string{f.manifests})
		return objects, false, err
	}
	root, err := os.OpenRoot(f.manifests)
	if err != nil {
		return nil, true, err
	}
	defer func() { _ = root.Close() }()
	objects, err = capi.Load(root.FS())
	return objects, true, err
}

// readSigners gives the files of a folder in which each is a key.
func readSigners(folder string) (map[string]string, error) {
	signers, problems, err := trust.ReadSigners(os.DirFS(folder), ".")
	for _, problem := range problems {
		err = errors.Join(err, problem)
	}
	if err == nil && signers.Empty() {
		err = errors.New("no key of a first signer is there: NAME.pub or NAME.asc")
	}
	if err != nil {
		return nil, fmt.Errorf("signers %s: %w", folder, err)
	}
	files, err := readFolder(folder)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for name, data := range files {
		texts[name] = string(data)
	}
	return texts, nil
}

// readFolder reads the files of a folder; no folder is no files. Names with a
// dot in front, and folders, are not ours.
func readFolder(folder string) (map[string][]byte, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if entry.IsDir() || entry.Name()[0] == '.' {
			continue
		}
		if files[entry.Name()], err = readBounded(filepath.Join(folder, entry.Name()), maxKeyBytes); err != nil {
			return nil, err
		}
	}
	return files, nil
}
