package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fleetling/fleetling/agent/endpoint"
)

// apiServerFile is the key of ConfigMap fleetling-identity with the address of
// the API server, and in the data folder the one that answered last.
const apiServerFile = "api-server"

// reach sets the address of the API server, where there is a choice: it waits
// until one of them answers. The choice is made once a process: who loses the API
// server loses the Lease, ends, and chooses again.
func (o *Options) reach(ctx context.Context) error {
	told := ""
	for wait := time.Second; ; wait = min(2*wait, 10*time.Second) {
		candidates, problems := endpoint.Candidates(o.hints())
		if len(candidates) == 1 && problems == nil {
			return o.reached(candidates[0], false)
		}
		chosen, err := endpoint.Choose(ctx, o.REST, candidates)
		if err == nil {
			o.Log.Info("reached the API server", "url", chosen.URL, "origin", chosen.Origin)
			return o.reached(chosen, true)
		}
		if text := fmt.Sprint(err, problems); text != told {
			told = text
			o.Log.Info("no API server answers yet", "error", errors.Join(problems, err).Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

func (o *Options) hints() endpoint.Hints {
	return endpoint.Hints{
		Environment: o.APIServer, NodeIP: o.NodeIP, InCluster: o.REST.Host,
		Identity:   readLine(filepath.Join(filepath.Dir(o.config.Identity), apiServerFile)),
		Remembered: readLine(filepath.Join(o.config.DataDir, apiServerFile)),
	}
}

func (o *Options) reached(c endpoint.Candidate, choice bool) error {
	o.REST = rest.CopyConfig(o.REST)
	o.REST.Host = c.URL
	if !choice {
		return nil
	}
	o.config.reached = c.String()
	if err := os.WriteFile(filepath.Join(o.config.DataDir, apiServerFile), []byte(c.URL), 0o600); err != nil {
		return fmt.Errorf("remember the API server: %w", err)
	}
	return nil
}

// maxLine bounds a file of one line.
const maxLine = 1 << 10

// readLine gives "" for a file that is not there; what can't be read is as good.
func readLine(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxLine))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
