package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/fleetling/fleetling/sources"
)

const (
	// maxProblems is how many problems one error tells.
	maxProblems = 20
	// maxKept bounds what is kept until they are sorted.
	maxKept = 1000
)

// place is where a problem stands.
type place struct {
	file, addOn, object string
	line                int
}

func (p place) on(line int) place {
	p.line = line
	return p
}

// fault is a problem whose place is not known yet.
func fault(reason sources.Reason, format string, args ...any) *sources.Error {
	return &sources.Error{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// problems collects, so that a person can mend all of them in one commit.
type problems struct {
	kept    []*sources.Error
	dropped int
}

func (p *problems) add(at place, problem *sources.Error) {
	if len(p.kept) == maxKept {
		p.dropped++
		return
	}
	p.kept = append(p.kept, &sources.Error{
		Reason: problem.Reason, AddOn: at.addOn, File: at.file, Line: at.line, Object: at.object, Err: problem.Err,
	})
}

// only forgets all others, which follow from this one.
func (p *problems) only(at place, problem *sources.Error) {
	*p = problems{}
	p.add(at, problem)
}

// err joins the problems in file order; it is nil when there are none.
func (p *problems) err() error {
	if len(p.kept) == 0 {
		return nil
	}
	slices.SortStableFunc(p.kept, func(a, b *sources.Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	told := min(len(p.kept), maxProblems)
	errs := make([]error, 0, told+1)
	for _, problem := range p.kept[:told] {
		errs = append(errs, problem)
	}
	if more := len(p.kept) - told + p.dropped; more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}
