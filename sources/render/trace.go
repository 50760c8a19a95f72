package render

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"strings"

	"github.com/fleetling/fleetling/sources"
)

// op is one kind of question to the file system.
type op int

const (
	opStat op = iota
	opRead
	opList
)

// question is one question that a render asked.
type question struct {
	op   op
	name string
}

// trace is every question of one render with the hash of its answer.
type trace map[question][sha256.Size]byte

func (t trace) stat(name, actual string, k kind) {
	t[question{opStat, name}] = sha256.Sum256(fmt.Appendf(nil, "%d %s", k, actual))
}

func (t trace) read(name string, data []byte) {
	t[question{opRead, name}] = sha256.Sum256(data)
}

func (t trace) list(name string, names []string) {
	t[question{opList, name}] = sha256.Sum256([]byte(strings.Join(names, "/")))
}

// holds asks all questions again and says whether every answer is still the
// same. The render saw nothing else, so its result still stands then.
func (t trace) holds(fsys fs.FS, limits sources.Limits) bool {
	again := newTree(fsys, limits)
	for q, answer := range t {
		if !again.ask(q) || again.trace[q] != answer {
			return false
		}
	}
	return true
}

func (t *tree) ask(q question) bool {
	var err error
	switch q.op {
	case opStat:
		_, _, err = t.stat(q.name)
	case opRead:
		_, err = t.load(q.name)
	case opList:
		_, err = t.entries(q.name)
	}
	return err == nil
}
