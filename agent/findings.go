package agent

import (
	"fmt"
	"sync"
	"time"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/fleet"
	"github.com/fleetling/fleetling/sources/trust"
)

// findings are what the source loop found last. It is a value: a newer one
// replaces it whole.
type findings struct {
	told told
	// head is the branch's head at the last contact; contact says why the last
	// try failed. stale says that there was no contact for too long, and since
	// when.
	head        string
	contact     error
	lastContact time.Time
	stale       bool
	// verified is the newest verified head, and refusal why a newer one is not
	// taken.
	verified *trust.Verified
	refusal  error
	// selection is the newest that is known, and selectErr why it is not that of
	// the verified revision and of the identity as it was found.
	selection *fleet.Selection
	selectErr error
	// targets are what that selection wants; nil when it is not known.
	targets []target
	// fleet is the fleet file of the verified revision, as soon as it could be
	// read; it says more than what is selected here.
	fleet *fleet.Fleet
	// handled is the value of the annotation reconcile-at that these findings
	// answer.
	handled string
}

// stranger tells that what is kept here is another cluster's.
func (f findings) stranger() bool {
	return f.verified == nil && sources.ReasonOf(f.selectErr) == sources.IdentityDiffers
}

// sameNews tells whether the pass loop would make the same of both.
func (f findings) sameNews(o findings) bool { return f.news() == o.news() }

func (f findings) news() string {
	var commit, selection string
	if f.verified != nil {
		commit = f.verified.Commit
	}
	if f.selection != nil {
		selection = f.selection.Digest + fmt.Sprint(f.selection.Labels, f.selection.Differs)
	}
	return fmt.Sprintf("%v|%v|%v|%s|%v|%s|%v|%t|%s", f.told.err, f.contact, f.stale, commit, f.refusal, selection, f.selectErr, f.targets == nil, f.handled)
}

// board is where the other loops put their findings for the pass loop.
type board struct {
	mu         sync.Mutex
	last       findings
	connection *connection
}

// connect posts what the ClusterSet's loop found, and tells whether it is news.
func (b *board) connect(c connection) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.connection != nil && *b.connection == c {
		return false
	}
	b.connection = &c
	return true
}

func (b *board) connected() *connection {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.connection
}

func (b *board) read() findings {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

func (b *board) post(f findings) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = f
}
