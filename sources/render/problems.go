package render

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/fleetling/fleetling/sources"
)

// maxProblems is how many problems of one add-on an error spells out.
const maxProblems = 20

// problems collects what is wrong with one add-on, so that an author sees more
// than the first fault. The walk that fills it is deterministic, so the first
// twenty are always the same ones.
type problems struct {
	addOn string
	list  []*sources.Error
	more  int
	// limit is the first limit that was hit.
	limit *sources.Error
}

// place is where something is written: a file of the fleet repository and its
// line, 0 where it is not known.
type place struct {
	file string
	line int
}

func (p *problems) add(at place, format string, args ...any) {
	p.put(&sources.Error{Reason: sources.RenderFailed, File: at.file, Line: at.line, Err: fmt.Errorf(format, args...)})
}

func (p *problems) put(e *sources.Error) {
	e.AddOn = p.addOn
	if e.Reason == sources.LimitExceeded {
		if p.limit == nil {
			p.limit = e
		}
		return
	}
	if slices.ContainsFunc(p.list, func(old *sources.Error) bool { return old.Error() == e.Error() }) {
		return
	}
	if len(p.list) == maxProblems {
		p.more++
		return
	}
	p.list = append(p.list, e)
}

// stopped says that a limit was hit: nothing more is read.
func (p *problems) stopped() bool { return p.limit != nil }

// err gives all problems, sorted by file and line, and nil when there are none.
// Where a limit was hit that is the only problem: what else was seen until then
// depends on where the reading stopped.
func (p *problems) err() error {
	if p.limit != nil {
		return p.limit
	}
	slices.SortStableFunc(p.list, byPlace)
	switch {
	case len(p.list) == 0:
		return nil
	case len(p.list) == 1:
		return p.list[0]
	}
	joined := make([]error, 0, len(p.list)+1)
	for _, e := range p.list {
		joined = append(joined, e)
	}
	if p.more > 0 {
		joined = append(joined, fmt.Errorf("and %d more", p.more))
	}
	return errors.Join(joined...)
}

func byPlace(a, b *sources.Error) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Error(), b.Error()))
}
