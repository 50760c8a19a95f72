package build

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const module = "module github.com/fleetling/fleetling\n"

// Root finds the repository's top folder, from the working directory upwards.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if bytes.HasPrefix(content, []byte(module)) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s: not inside fleetling's repository", start)
		}
	}
}

// Cache is the folder for what is built and kept between runs.
func Cache(root string) string { return filepath.Join(root, ".cache") }
