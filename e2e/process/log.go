package process

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	tailLines = 25
	tailBytes = 16 << 10
)

// Explain adds to an error what the process printed last and where the rest
// of it is.
func (p *Process) Explain(err error) error {
	return fmt.Errorf("%w; last lines of %s:\n%s", err, p.log, Tail(p.log))
}

// Tail gives the last lines of a file, or why it can't be read.
func Tail(path string) string {
	content, err := end(path, tailBytes)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// end gives at most limit bytes from the end of a file, whole lines.
func end(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	start := max(0, info.Size()-limit)
	content, err := io.ReadAll(io.NewSectionReader(file, start, limit))
	if err != nil || start == 0 {
		return content, err
	}
	if _, rest, found := bytes.Cut(content, []byte("\n")); found {
		content = rest
	}
	return content, nil
}
