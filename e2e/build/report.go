package build

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// maxRest bounds the lines that are kept for an error.
const maxRest = 40

// report reads what the go tool says and tells how far it is.
type report struct {
	name  string
	out   io.Writer
	start time.Time

	mu         sync.Mutex
	total      int
	downloaded int
	compiled   int
	partial    []byte
	others     []string
}

// every writes a line each interval, until the function that it gives is called.
func (r *report) every(interval time.Duration) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				r.line()
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// expect says how many packages there are, cached ones among them.
func (r *report) expect(total int) {
	r.mu.Lock()
	r.total = total
	r.mu.Unlock()
	r.line()
}

func (r *report) line() {
	r.mu.Lock()
	defer r.mu.Unlock()
	elapsed := time.Since(r.start).Round(time.Second)
	if r.total == 0 {
		fmt.Fprintf(r.out, "%s: reading sources, %d modules downloaded, %s\n", r.name, r.downloaded, elapsed)
		return
	}
	fmt.Fprintf(r.out, "%s: compiled %d of at most %d packages, %s\n", r.name, r.compiled, r.total, elapsed)
}

// Write takes standard error of the go tool: `go build -v` names each package
// on a line of its own when it starts to compile it. A cached one is not named.
func (r *report) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partial = append(r.partial, p...)
	for {
		line, rest, found := bytes.Cut(r.partial, []byte("\n"))
		if !found {
			return len(p), nil
		}
		r.count(string(line))
		r.partial = rest
	}
}

func (r *report) count(line string) {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		r.downloaded++
	case line != "" && !strings.ContainsAny(line, " \t:"):
		r.compiled++
	default:
		r.others = append(r.others[max(0, len(r.others)-maxRest+1):], line)
	}
}

// rest gives what the go tool said that was not progress.
func (r *report) rest() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(append(r.others, string(r.partial)), "\n")
}
