package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fleetling/fleetling/agent/capi"
)

// secrets writes the objects that hold credentials to a file that only its owner
// reads.
func (f *renderFlags) secrets(installed []capi.Object, entries []capi.Entry) error {
	credentials := map[string]capi.Credentials{}
	for _, entry := range entries {
		found, folder, err := readCredentials(f.credentials, entry.Name)
		if err != nil {
			return fmt.Errorf("credentials of %s: %w", entry.Name, err)
		}
		if len(found.Git) > 0 {
			if err := checkRemote(installed, folder); err != nil {
				return fmt.Errorf("credentials of %s: %w", entry.Name, err)
			}
		}
		credentials[entry.Name] = found
	}
	objects, err := capi.Secrets(entries, credentials, f.target)
	if err != nil {
		return err
	}
	if len(objects) == 0 {
		return fmt.Errorf("%s holds no credentials of these clusters: git/, clusters/NAME/git/ or clusters/NAME/member-key", f.credentials)
	}
	text, err := capi.Text(objects)
	if err != nil {
		return err
	}
	return writeSecret(f.withSecrets, text)
}

// readCredentials takes a cluster's own git credentials before those of all, and
// says which folder they are from.
func readCredentials(folder, name string) (found capi.Credentials, git string, err error) {
	own := filepath.Join(folder, "clusters", name)
	for _, git = range []string{filepath.Join(own, "git"), filepath.Join(folder, "git")} {
		if found.Git, err = readFolder(git); err != nil || len(found.Git) > 0 {
			break
		}
	}
	if err != nil {
		return found, git, err
	}
	found.MemberKey, err = readBounded(filepath.Join(own, "member-key"), maxKeyBytes)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return found, git, err
}

// writeSecret replaces a file by one of mode 0600: what was readable before does
// not stay so.
func writeSecret(name string, data []byte) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".fleetling-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
