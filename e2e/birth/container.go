package birth

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/fleetling/fleetling/e2e/process"
)

// nodeAddress is the node's: loopback, where nobody listens on the API server's
// port, so that the agent has to look further.
const nodeAddress = "127.0.0.7"

// enter makes the mount namespace and becomes the program. $0 is the folder with
// the Pod's /etc and /var, the program stands in /var there; the parent death
// signal is lost with the credentials and set anew.
const enter = `mount --bind "$0/etc" /etc && mount --bind "$0/var" /var && exec setpriv \
	--reuid "$1" --regid "$2" --groups "$3" --no-new-privs --bounding-set=-all --inh-caps=-all --pdeathsig keep \
	/var/fleetling "${@:4}"`

// command is the container's process with arguments.
func (p *Pod) command(args []string) (process.Command, error) {
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return process.Command{}, err
	}
	if len(p.container().Command) > 0 {
		return process.Command{}, errors.New("the Pod has a command of its own")
	}
	if err := p.prepare(); err != nil {
		return process.Command{}, err
	}
	env, err := p.environment()
	if err != nil {
		return process.Command{}, err
	}
	line := []string{"--mount", "--propagation", "private", "bash", "-c", enter, p.root}
	as := p.object.Spec.SecurityContext
	for _, id := range []*int64{as.RunAsUser, as.RunAsGroup, as.FSGroup} {
		line = append(line, strconv.FormatInt(*id, 10))
	}
	return process.Command{Path: unshare, Args: append(line, args...), Env: env, Log: p.Log()}, nil
}

// prepare puts the program of the image in its place.
func (p *Pod) prepare() error {
	program := p.inside("/var/fleetling")
	if _, err := os.Stat(program); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	image, ok := p.kubelet.workload.Images[p.Image()]
	if !ok {
		return fmt.Errorf("image %s can't be pulled", p.Image())
	}
	content, err := os.ReadFile(image)
	if err != nil {
		return err
	}
	return os.WriteFile(program, content, 0o755)
}

// environment is the container's, with the Service kubernetes as kubelet tells
// of it.
func (p *Pod) environment() ([]string, error) {
	server, err := url.Parse(p.kubelet.cluster.Server())
	if err != nil {
		return nil, err
	}
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME=node",
		"KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port(),
	}
	for _, v := range p.container().Env {
		value := v.Value
		if v.ValueFrom != nil {
			if v.ValueFrom.FieldRef == nil || v.ValueFrom.FieldRef.FieldPath != "status.hostIP" {
				return nil, fmt.Errorf("variable %s: only status.hostIP is supported", v.Name)
			}
			value = nodeAddress
		}
		env = append(env, v.Name+"="+value)
	}
	return env, nil
}

// content is what a volume holds: files by name, with a mode; nil files are the
// Pod's own.
type content struct {
	files map[string][]byte
	mode  os.FileMode
	group int
}

// write makes a volume's files what they should be: each at once, none that is
// the same already.
func (c content) write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if c.files == nil {
		// As fsGroup says of an emptyDir.
		return errors.Join(os.Chown(folder, 0, c.group), os.Chmod(folder, 0o770|fs.ModeSetgid))
	}
	held, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range held {
		// A folder is where another volume is mounted.
		if _, wanted := c.files[entry.Name()]; !wanted && !entry.IsDir() {
			if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil {
				return err
			}
		}
	}
	for name, data := range c.files {
		if err := c.replace(filepath.Join(folder, name), data); err != nil {
			return err
		}
	}
	return nil
}

func (c content) replace(path string, data []byte) error {
	if held, err := os.ReadFile(path); err == nil && bytes.Equal(held, data) {
		return nil
	}
	next := path + ".next"
	return errors.Join(os.WriteFile(next, data, 0o600), os.Chown(next, 0, c.group), os.Chmod(next, c.mode), os.Rename(next, path))
}
