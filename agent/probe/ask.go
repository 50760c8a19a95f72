package probe

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 4 << 10

// Live asks whether the agent of a data folder is alive. The error says why not.
func Live(ctx context.Context, dir string) error { return ask(ctx, dir, livePath) }

// Ready asks whether it is ready.
func Ready(ctx context.Context, dir string) error { return ask(ctx, dir, readyPath) }

func ask(ctx context.Context, dir, path string) error {
	f, err := openFolder(dir)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	defer func() { _ = f.Close() }()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", f.socket())
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent"+path, nil)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("probe: the agent does not answer: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", strings.TrimSpace(string(text)))
	}
	return nil
}
