package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

const socketName = "probe.sock"

// folder is a data folder, held open.
type folder struct{ *os.File }

func openFolder(dir string) (folder, error) {
	f, err := os.Open(dir)
	return folder{f}, err
}

// socket is a short path of the socket, good while the folder is open.
func (f folder) socket() string {
	return filepath.Join("/proc/self/fd", strconv.Itoa(int(f.Fd())), socketName)
}

// listen takes the place of a socket that a process before this one has left.
func (f folder) listen() (*net.UnixListener, error) {
	if err := os.Remove(f.socket()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: f.socket(), Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(f.socket(), 0o600); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("keep others from it: %w", err)
	}
	return listener, nil
}
