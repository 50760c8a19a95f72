package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"
)

// Checks are the answers. Nil is yes.
type Checks struct {
	// Live is no when a restart would help.
	Live func() error
	// Ready is no as long as this process has not shown that it can do what the
	// one before it did.
	Ready func() error
}

// Paths of the two questions, over HTTP.
const (
	livePath  = "/healthz"
	readyPath = "/readyz"
)

// Server answers on the socket of one data folder.
type Server struct {
	folder   folder
	listener net.Listener
	checks   Checks
}

// Listen opens the socket. Serve closes it.
func Listen(dir string, checks Checks) (*Server, error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("probe socket: %w", err)
	}
	listener, err := f.listen()
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("probe socket %s: %w", filepath.Join(dir, socketName), err)
	}
	return &Server{f, listener, checks}, nil
}

// answerTime bounds one answer.
const answerTime = 5 * time.Second

// Serve answers until ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	defer func() { _ = s.folder.Close() }()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+livePath, answer(s.checks.Live))
	mux.HandleFunc("GET "+readyPath, answer(s.checks.Ready))
	server := &http.Server{Handler: mux, ReadTimeout: answerTime, WriteTimeout: answerTime, MaxHeaderBytes: 4 << 10}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(s.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("probe socket: %w", err)
	}
	return nil
}

func answer(check func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := check(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	}
}
