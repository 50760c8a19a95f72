package clusterset

import (
	"sync"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/record"
)

// inbox is what others have told the loop since its last round. Telling never
// blocks.
type inbox struct {
	mu   sync.Mutex
	rung chan struct{}
	news news
}

type news struct {
	list *List
	// namespaces that appeared (true) or went.
	namespaces map[string]bool
	// heads are those that a watch told of, by member.
	heads map[string]discovery.Head
	// exports says that the own exports may have changed.
	exports bool
	status  *record.Status
}

func newInbox() *inbox { return &inbox{rung: make(chan struct{}, 1)} }

func (i *inbox) tell(change func(*news)) {
	i.mu.Lock()
	change(&i.news)
	i.mu.Unlock()
	select {
	case i.rung <- struct{}{}:
	default:
	}
}

func (i *inbox) take() news {
	i.mu.Lock()
	defer i.mu.Unlock()
	taken := i.news
	i.news = news{}
	return taken
}

// SetList tells of a newly verified list.
func (l *Loop) SetList(list List) { l.inbox.tell(func(n *news) { n.list = &list }) }

// SetNamespace tells whether a namespace is here.
func (l *Loop) SetNamespace(name string, here bool) {
	l.inbox.tell(func(n *news) {
		if n.namespaces == nil {
			n.namespaces = map[string]bool{}
		}
		n.namespaces[name] = here
	})
}

// SetStatus tells how this cluster is doing; what it says of itself as a record
// (names, sequence, times) is filled in when it is published.
func (l *Loop) SetStatus(status record.Status) { l.inbox.tell(func(n *news) { n.status = &status }) }

// Changed tells that the own exports may have changed.
func (l *Loop) Changed() { l.inbox.tell(func(n *news) { n.exports = true }) }

func (l *Loop) head(h discovery.Head) {
	l.inbox.tell(func(n *news) {
		if n.heads == nil {
			n.heads = map[string]discovery.Head{}
		}
		n.heads[h.Member] = h
	})
}
