package apply

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// view is what we know of the live objects with our label, fed by two sources:
// the watches and the answers to our own writes. An answer stands until the
// watch has caught up with its resourceVersion, so that neither can turn the
// other back; beyond that the watch is believed, also where versions go back
// because etcd was restored.
type view struct {
	// changed is called, without a lock held, when there is news for planning.
	changed func()

	mu    sync.RWMutex
	kinds map[schema.GroupKind]*kindView
}

func newView(changed func()) *view {
	return &view{changed: changed, kinds: map[schema.GroupKind]*kindView{}}
}

// snapshot is a copy of all that is known, and of which kinds are known whole.
// What it points to is never changed.
func (v *view) snapshot() (map[ID]*Live, map[schema.GroupKind]bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	n := 0
	for _, kind := range v.kinds {
		n += len(kind.objects)
	}
	all, synced := make(map[ID]*Live, n), map[schema.GroupKind]bool{}
	for gk, kind := range v.kinds {
		maps.Copy(all, kind.objects)
		synced[gk] = kind.synced
	}
	return all, synced
}

// of is a copy of what is known of one kind.
func (v *view) of(gk schema.GroupKind) map[ID]*Live {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if kind := v.kinds[gk]; kind != nil {
		return maps.Clone(kind.objects)
	}
	return nil
}

// get is what is known of one object: nothing is the zero Live.
func (v *view) get(id ID) Live {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if kind := v.kinds[id.GroupKind()]; kind != nil && kind.objects[id] != nil {
		return *kind.objects[id]
	}
	return Live{}
}

// add begins to know a kind.
func (v *view) add(gk schema.GroupKind) *kindView {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.kinds[gk] = &kindView{view: v, kind: gk, objects: map[ID]*Live{}, answers: map[ID]bool{}}
	return v.kinds[gk]
}

// drop forgets a kind. What its watch still delivers goes nowhere.
func (v *view) drop(gk schema.GroupKind) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.kinds, gk)
}

// observe takes the answer to a write of ours. It tells nothing of health: the
// object is in progress until the watch has caught up.
func (v *view) observe(id ID, live Live) {
	v.mu.Lock()
	defer v.mu.Unlock()
	kind := v.kinds[id.GroupKind()]
	if kind == nil {
		return
	}
	if old, known := kind.objects[id]; known && old.Version >= live.Version {
		return
	}
	kind.objects[id], kind.answers[id] = &live, true
}

// ending notes that the API server took our delete of an incarnation.
func (v *view) ending(id ID, uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	kind := v.kinds[id.GroupKind()]
	if kind == nil || kind.objects[id] == nil || kind.objects[id].UID != uid {
		return
	}
	live := *kind.objects[id]
	live.Deleting = true
	kind.objects[id] = &live
}

// forget takes out an object that a read found gone.
func (v *view) forget(id ID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if kind := v.kinds[id.GroupKind()]; kind != nil {
		kind.drop(id)
	}
}

// kindView is the part of the view that one watch feeds: a cache.ReflectorStore.
type kindView struct {
	view    *view
	kind    schema.GroupKind
	objects map[ID]*Live
	// answers are the objects of which an answer told last.
	answers map[ID]bool
	synced  bool
}

// ahead tells that an answer is newer than what the watch says.
func (k *kindView) ahead(id ID, version uint64) bool {
	return k.answers[id] && k.objects[id].Version > version
}

func (k *kindView) drop(id ID) {
	delete(k.objects, id)
	delete(k.answers, id)
}

func (k *kindView) id(u *unstructured.Unstructured) ID {
	return ID{Group: k.kind.Group, Kind: k.kind.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}

// Add takes an object that came into sight.
func (k *kindView) Add(obj any) error { return k.Update(obj) }

// Update takes an object's newer state.
func (k *kindView) Update(obj any) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	live := liveOf(u)
	if k.set(k.id(u), &live) {
		k.view.changed()
	}
	return nil
}

func (k *kindView) set(id ID, live *Live) (news bool) {
	k.view.mu.Lock()
	defer k.view.mu.Unlock()
	if k.ahead(id, live.Version) {
		return false
	}
	old := k.objects[id]
	live.stays(old)
	k.objects[id] = live
	delete(k.answers, id)
	return old == nil || old.differs(live)
}

// Delete takes an object that went out of sight: deleted, or without our label.
func (k *kindView) Delete(obj any) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	if k.unset(k.id(u), parseVersion(u.GetResourceVersion())) {
		k.view.changed()
	}
	return nil
}

func (k *kindView) unset(id ID, version uint64) (news bool) {
	k.view.mu.Lock()
	defer k.view.mu.Unlock()
	if k.objects[id] == nil || k.ahead(id, version) {
		return false
	}
	k.drop(id)
	return true
}

// Replace takes the whole list, as of a resourceVersion: what is not in it is
// gone, but for what an answer has shown to be newer.
func (k *kindView) Replace(list []any, version string) error {
	at := parseVersion(version)
	next := make(map[ID]*Live, len(list))
	for _, obj := range list {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			live := liveOf(u)
			next[k.id(u)] = &live
		}
	}
	k.replace(next, at)
	k.view.changed()
	return nil
}

func (k *kindView) replace(next map[ID]*Live, at uint64) {
	k.view.mu.Lock()
	defer k.view.mu.Unlock()
	answers := map[ID]bool{}
	for id, live := range next {
		live.stays(k.objects[id])
	}
	for id := range k.answers {
		version := at
		if listed := next[id]; listed != nil {
			version = listed.Version
		}
		if k.ahead(id, version) {
			next[id], answers[id] = k.objects[id], true
		}
	}
	k.objects, k.answers, k.synced = next, answers, true
}

// Resync has no meaning here.
func (k *kindView) Resync() error { return nil }

// stays keeps what is for good: an incarnation that is being deleted, which we
// may know before the watch does, never comes back.
func (l *Live) stays(old *Live) {
	l.Deleting = l.Deleting || (old != nil && old.UID == l.UID && old.Deleting)
}

// differs tells whether a newer state is news for planning.
func (l *Live) differs(o *Live) bool {
	return l.UID != o.UID || l.Fields != o.Fields || l.AddOn != o.AddOn || l.Prune != o.Prune ||
		l.Health != o.Health || l.Message != o.Message || l.Bare != o.Bare || l.Deleting != o.Deleting ||
		!slices.Equal(l.Finalizers, o.Finalizers)
}
