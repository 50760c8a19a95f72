package apply

import (
	"cmp"
	"slices"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/ssa"
)

// Report is what a pass found and did, as data.
type Report struct {
	// AddOns are in the order of Wanted; add-ons that are being removed come
	// last, as long as they hold something.
	AddOns []AddOnReport
	// Strays carry our label and fields, and nothing accounts for them.
	Strays []ID
	// Again is when to look again without news, and zero when there is no need.
	Again time.Duration
}

// AddOnReport is the part of one add-on.
type AddOnReport struct {
	Name string
	// Selected is false for an add-on that is being removed.
	Selected bool
	// Objects is how many it wants, Ready how many of them are applied and
	// current, Inventory how many it holds.
	Objects, Ready, Inventory int
	// Changes are what this pass did, in Flux' words.
	Changes ssa.ChangeSet
	// Repaired are the objects that others had changed or deleted.
	Repaired []ID
	// Failures are sorted by file, then object. Refused is how many of them this
	// pass asked for; the others wait for their next try.
	Failures []Failure
	Refused  int
	// Waiting are wanted objects that can't be applied yet.
	Waiting []Waiting
	// Unready are applied objects that are not current, and NoStatus how many
	// count as current because nobody says anything else.
	Unready  []Unready
	NoStatus int
	// Removing are objects on their way out, Hold what is not deleted without
	// consent.
	Removing []Waiting
	Hold     *Hold
}

// Unready is an object that is not current.
type Unready struct {
	ID      ID
	Status  status.Status
	Message string
}

// Applied tells that all that the add-on wants is in the cluster as wanted.
func (r AddOnReport) Applied() bool { return len(r.Failures)+len(r.Waiting) == 0 }

// Healthy tells that all of it is current.
func (r AddOnReport) Healthy() bool { return r.Ready == r.Objects }

// Quiet tells that nothing is under way or held.
func (r AddOnReport) Quiet() bool { return len(r.Removing) == 0 && r.Hold == nil }

// report tells of a pass that was planned at a time. What was due then has been
// tried: only later tries are waited for.
func (e *Engine) report(plan Plan, done map[string]*progress, planned time.Time) Report {
	report := Report{Strays: plan.Strays}
	wait := shortest{}
	for _, addOn := range plan.AddOns {
		p := done[addOn.Name]
		r := AddOnReport{
			Name: addOn.Name, Selected: addOn.Selected,
			Objects: addOn.Objects, Inventory: len(e.memory.inventory[addOn.Name]),
			Changes: ssa.ChangeSet{Entries: p.entries}, Repaired: p.repaired,
			Failures: p.failures, Refused: p.refused, Waiting: p.waiting, Removing: p.removing, Hold: addOn.Removal.Hold,
		}
		slices.SortFunc(r.Failures, func(a, b Failure) int { return cmp.Or(cmp.Compare(a.File, b.File), a.ID.Compare(b.ID)) })
		if !addOn.Selected && r.Inventory == 0 {
			continue // the last of it is gone
		}
		wait.take(r.assess(addOn, e.watcher.view.get, e.now()))
		if len(p.gone) > 0 && !r.Quiet() {
			wait.take(time.Millisecond) // the next stage can go, or less is held
		}
		if p.blind {
			wait.take(firstRetry)
		}
		report.AddOns = append(report.AddOns, r)
	}
	for _, retry := range e.memory.retries {
		if retry.Next.After(planned) {
			wait.take(max(retry.Next.Sub(e.now()), time.Millisecond))
		}
	}
	for _, applied := range e.memory.applied {
		wait.take(max(applied.Verify.Sub(e.now()), time.Minute)) // those of a minute together
	}
	if e.memory.unborn {
		wait.take(firstRetry) // it has no label of ours, so no watch tells
	}
	if e.memory.discovery.unserved {
		wait.take(max(e.memory.discovery.next.Sub(e.now()), time.Millisecond))
	}
	report.Again = wait.d
	return report
}

// assess counts what is ready, and tells how long it is until time alone
// changes that.
func (r *AddOnReport) assess(addOn AddOnPlan, live func(ID) Live, now time.Time) time.Duration {
	missing := map[ID]bool{}
	for _, failure := range r.Failures {
		missing[failure.ID] = true
	}
	for _, waiting := range r.Waiting {
		missing[waiting.ID] = true
	}
	wait := shortest{}
	for id := range addOn.Wanted {
		if missing[id] {
			continue
		}
		l := live(id)
		s, message, left := l.health(now)
		wait.take(left)
		switch {
		case s != status.CurrentStatus:
			r.Unready = append(r.Unready, Unready{id, cmp.Or(s, status.InProgressStatus), message})
			continue
		case l.Bare:
			r.NoStatus++
		}
		r.Ready++
	}
	slices.SortFunc(r.Unready, func(a, b Unready) int { return a.ID.Compare(b.ID) })
	return wait.d
}

// shortest keeps the shortest of the waits that are not zero.
type shortest struct{ d time.Duration }

func (s *shortest) take(d time.Duration) {
	if d > 0 && (s.d == 0 || d < s.d) {
		s.d = d
	}
}
