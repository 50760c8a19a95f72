package clusterset

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/fleetling/fleetling/e2e/build"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/process"
)

// corefile is CoreDNS' configuration; its values are the path of a kubeconfig and
// a context of it.
const corefile = `.:53 {
	errors
	ready 127.0.0.1:8181
	kubernetes cluster.local clusterset.local {
		kubeconfig %s %s
		multicluster clusterset.local
	}
}
`

func (c *Cluster) startCoreDNS(ctx context.Context) error {
	path := filepath.Join(c.dir, c.name+".corefile")
	content := fmt.Sprintf(corefile, c.KubeconfigFile(), c.name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return err
	}
	return c.run(ctx, build.Program{c.programs.coreDNS}, "http://127.0.0.1:8181/ready", "-conf="+path)
}

// startProxy runs after the node is there, which kube-proxy waits for in silence.
// The limits of connection tracking are the machine's: 0 leaves them alone.
func (c *Cluster) startProxy(ctx context.Context) error {
	return c.run(ctx, c.programs.proxy, "http://127.0.0.1:10256/healthz",
		"--kubeconfig="+c.KubeconfigFile(),
		"--proxy-mode=nftables",
		"--cluster-cidr="+c.Site.Pods().String(),
		"--hostname-override="+c.nodeName(),
		"--healthz-bind-address=127.0.0.1:10256",
		"--metrics-bind-address=127.0.0.1:10249",
		"--conntrack-max-per-core=0",
		"--conntrack-tcp-timeout-established=0",
		"--conntrack-tcp-timeout-close-wait=0",
	)
}

// run starts a program in the site and waits until it says that it is ready.
func (c *Cluster) run(ctx context.Context, program build.Program, ready string, args ...string) error {
	name := program[len(program)-1]
	started, err := process.Start(process.Command{
		Path: program[0], Args: append(program[1:len(program):len(program)], args...),
		Log: filepath.Join(c.dir, c.name+"-"+filepath.Base(name)+".log"), Namespace: c.Site.Name(),
	})
	if err != nil {
		return err
	}
	c.processes = append(c.processes, started)
	client := &http.Client{Transport: &http.Transport{DialContext: c.Site.Dial, DisableKeepAlives: true}}
	last := errors.New("not asked yet")
	err = harness.Until(ctx, func(ctx context.Context) (bool, error) {
		if !started.Alive() {
			return false, fmt.Errorf("ended: %w", errors.Join(started.Wait(), last))
		}
		last = get(ctx, client, ready)
		return last == nil, nil
	})
	if err != nil {
		return started.Explain(fmt.Errorf("%w: %w", err, last))
	}
	return nil
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(url + ": " + response.Status)
	}
	return nil
}
