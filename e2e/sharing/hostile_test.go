package sharing_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/peer"
	"github.com/fleetling/fleetling/discovery/record"
	"github.com/fleetling/fleetling/e2e/world"
	"github.com/fleetling/fleetling/sources/gittest"
)

func TestACompromisedMemberGetsNoAddressesButItsOwn(t *testing.T) {
	all := sides(t, "ap", "eu", "us")
	ap, eu, us := all[0], all[1], all[2]
	liar := compromise(us)
	own := us.cluster.Site.Pods().Addr().Next().Next().String()
	lies := []string{
		eu.cluster.Site.Pods().Addr().Next().Next().String(), // another cluster's Pod
		ap.cluster.Site.Address().String(),                   // the reader's node
		ap.cluster.Site.Pods().Addr().Next().Next().String(), // the reader's Pod
		w.set.Hub.Address().String(),
		"127.0.0.1", "169.254.169.254", "100.100.100.200", "0.0.0.0", "224.0.0.1", "192.0.2.1",
	}
	for _, s := range []*side{ap, eu} {
		lies = append(lies, s.serviceAddress())
	}
	evil, parts := liar.exports("evil", append(lies, own)...)
	kube := evil
	kube.Namespace, kube.Name = "default", "kubernetes"
	dns := evil
	dns.Namespace, dns.Name = "kube-system", "kube-dns"
	liar.publish("us", func(r *record.Record) { r.Exports = []record.Export{kube, dns, evil} }, parts)

	for _, s := range []*side{ap, eu} {
		s.imported("evil", "us")
		s.has("evil", "us", 1)
		ready, other, err := s.endpoints(t.Context(), "evil", "us")
		require.NoError(t, err)
		assert.Equal(t, []string{own}, ready)
		assert.Empty(t, other)
		s.peerIs("us", v1alpha1.Contained, metav1.ConditionFalse, string(peer.NamespaceRefused))
		s.warned("us", string(peer.NamespaceRefused))
		found := s.peer("us")
		assert.Equal(t, len(lies)+2, found.Status.Refused, "all lies, and two exports")
		assert.Equal(t, 1, found.Status.Imported)
		for _, taken := range []client.ObjectKey{{Namespace: "default", Name: "kubernetes"}, {Namespace: "kube-system", Name: "kube-dns"}} {
			require.True(t, apierrors.IsNotFound(s.Client.Get(t.Context(), taken, &v1beta1.ServiceImport{})), "%s", taken)
		}
	}

	us.startAgent()
	for _, s := range []*side{ap, eu} {
		s.notImported("evil")
		s.peerIs("us", v1alpha1.Contained, metav1.ConditionTrue, "Contained")
	}
}

func TestACompromisedMemberDoesNotDecideWhatAnotherExports(t *testing.T) {
	all := sides(t, "ap", "eu", "us")
	ap, eu, us := all[0], all[1], all[2]
	eu.handmade("catalog", tcp("http", 80))
	eu.export("catalog")
	us.handmade("mine", tcp("http", 80))
	us.export("mine")
	ap.has("catalog", "eu", 1)
	ap.has("mine", "us", 1)

	undo := amendFleet(t, func() {
		w.fleet.Write("fleetling.yaml", fmt.Sprintf("%s\nexports:\n- {namespace: %s, clusters: [ap, eu]}\n", w.fleet.Git("show", "HEAD:fleetling.yaml"), ap.namespace))
	})
	for _, s := range all {
		s.notImported("mine")
		s.has("catalog", "eu", 1)
	}
	us.says("mine", v1beta1.ServiceExportConditionValid, metav1.ConditionFalse, "NotPermitted")

	before := ap.identities("catalog")
	liar := compromise(us)
	lie, parts := liar.exports("catalog", us.cluster.Site.Pods().Addr().Next().Next().String())
	lie.Created, lie.Type = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), string(v1beta1.Headless)
	liar.publish("us", func(r *record.Record) { r.Exports = []record.Export{lie} }, parts)
	for _, s := range []*side{ap, eu} {
		s.warned("us", string(peer.NamespaceRefused))
		s.peerIs("us", v1alpha1.Contained, metav1.ConditionFalse, string(peer.NamespaceRefused))
		s.imported("catalog", "eu")
		s.exposes("catalog", v1beta1.ClusterSetIP, "http 80/TCP")
		s.opens("catalog", "eu", "http")
		s.noSlices("catalog", "us")
	}
	eu.says("catalog", v1beta1.ServiceExportConditionConflict, metav1.ConditionFalse, string(v1beta1.ServiceExportReasonNoConflicts))
	assert.Equal(t, before, ap.identities("catalog"))

	us.startAgent()
	undo()
	ap.imported("mine", "us")
	us.says("mine", v1beta1.ServiceExportConditionReady, metav1.ConditionTrue, string(v1beta1.ServiceExportReasonExported))
}

func TestNobodyWithdrawsWhatAnotherExports(t *testing.T) {
	all := sides(t, "ap", "eu", "us")
	ap, eu, us := all[0], all[1], all[2]
	eu.handmade("catalog", tcp("http", 80))
	eu.export("catalog")
	ap.has("catalog", "eu", 1)
	old := gittest.NewRepo(t)
	old.Git("fetch", "--quiet", w.registry.URL, branch("eu"))
	eu.handmade("second", tcp("http", 80))
	eu.export("second")
	ap.has("second", "eu", 1)
	before := append(ap.identities("catalog"), ap.identities("second")...)
	stands := func(t *testing.T) {
		t.Helper()
		for _, name := range []string{"catalog", "second"} {
			ready, _, err := ap.endpoints(t.Context(), name, "eu")
			require.NoError(t, err)
			assert.Len(t, ready, 1, name)
		}
		assert.Equal(t, before, append(ap.identities("catalog"), ap.identities("second")...))
	}

	eu.stopAgent()
	genuine := gittest.NewRepo(t)
	genuine.Git("fetch", "--quiet", w.registry.URL, branch("eu"))
	liar := compromise(us)
	tombstone := func(r *record.Record) { r.Cluster, r.Withdrawn, r.Sequence = "eu", true, record.MaxSequence }
	for _, attack := range []struct {
		name   string
		do     func()
		reason peer.Reason
	}{
		{"a tombstone that another key has signed", func() { liar.publish("eu", tombstone, nil) }, peer.UnknownKey},
		{"a record that nobody has signed", func() { overwrite(t, "eu", map[string][]byte{"record": []byte("{}")}) }, peer.Malformed},
		{"an old record", func() { old.Git("push", "--quiet", "--force", w.registry.URL, "FETCH_HEAD:"+branch("eu")) }, peer.Replayed},
		{"a good record with another text", func() {
			sealed := genuine.Git("show", "FETCH_HEAD:record")
			overwrite(t, "eu", map[string][]byte{"record": []byte(strings.Replace(sealed, `"catalog"`, `"cbtalog"`, 1))})
		}, peer.BadSignature},
	} {
		t.Run(attack.name, func(t *testing.T) {
			attack.do()
			ap.peerIs("eu", v1alpha1.Trusted, metav1.ConditionFalse, string(attack.reason))
			ap.warned("eu", string(attack.reason))
			stands(t)
		})
	}
	for name, attack := range map[string]func(){
		"files that don't belong there": func() { overwrite(t, "eu", map[string][]byte{"record/record": []byte("x"), "more": nil}) },
		"a branch that is gone":         func() { genuine.Git("push", "--quiet", w.registry.URL, ":"+branch("eu")) },
	} {
		t.Run(name, func(t *testing.T) {
			attack()
			liar.isHeard(ap)
			stands(t)
		})
	}

	eu.startAgent()
	us.startAgent()
	ap.peerIs("eu", v1alpha1.Trusted, metav1.ConditionTrue, "Verified")
	stands(t)
	eu.unexport("second")
	ap.notImported("second")
}

func TestAReaderThatStartsAnewBeforeACorruptRegistryKeepsWhatItHas(t *testing.T) {
	all := sides(t, "ap", "eu", "us")
	ap, eu, us := all[0], all[1], all[2]
	eu.handmade("catalog", tcp("http", 80))
	eu.export("catalog")
	ap.has("catalog", "eu", 1)
	before := ap.identities("catalog")

	eu.stopAgent()
	liar := compromise(us)
	overwriteParts(t, "eu")
	require.NoError(t, ap.Agent.Restart(true))
	liar.isHeard(ap)
	assert.Equal(t, before, ap.identities("catalog"))
	ap.has("catalog", "eu", 1)

	eu.startAgent()
	eu.unexport("catalog")
	ap.notImported("catalog")
}

func TestAWipedRegistryLosesNothingAndIsFilledAgain(t *testing.T) {
	all := sides(t, "ap", "eu", "us")
	for _, s := range all {
		s.handmade("catalog", tcp("http", 80))
		s.export("catalog")
	}
	for _, s := range all {
		for _, from := range names {
			s.has("catalog", from, 1)
		}
	}
	before := catalogs(all)
	repo := gittest.NewRepo(t)
	repo.Git("push", "--quiet", w.registry.URL, ":"+branch("ap"), ":"+branch("eu"), ":"+branch("us"))
	all[0].eventually(func(context.Context) error {
		if listed := strings.Fields(repo.Git("ls-remote", w.registry.URL, branch("*"))); len(listed) != 2*len(names) {
			return fmt.Errorf("the registry has %q", listed)
		}
		return nil
	})
	for _, s := range all {
		s.handmade("after-"+s.cluster.Name(), tcp("http", 80))
		s.export("after-" + s.cluster.Name())
	}
	for _, s := range all {
		for _, from := range names {
			s.has("after-"+from, from, 1)
		}
	}
	assert.Equal(t, before, catalogs(all))
}

// liar says what it likes in the name of a member, with the member's key.
type liar struct {
	*side
	key  record.Key
	uid  string
	told uint64
}

// compromise stops the agent of a cluster and takes its place, until startAgent.
func compromise(s *side) *liar {
	s.Helper()
	s.stopAgent()
	var secret corev1.Secret
	require.NoError(s.T, s.Client.Get(s.Context(), client.ObjectKey{Namespace: world.Namespace, Name: "fleetling-member-key"}, &secret))
	key, err := record.ParseKey(secret.Data["identity"])
	require.NoError(s.T, err)
	var system corev1.Namespace
	require.NoError(s.T, s.Client.Get(s.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, &system))
	return &liar{side: s, key: key, uid: string(system.UID), told: published(s.T, s.cluster.Name()).Sequence}
}

// exports is an export with these endpoints, and its part.
func (l *liar) exports(name string, addresses ...string) (record.Export, map[string][]byte) {
	l.Helper()
	slice := record.Slice{AddressType: "IPv4", Ports: []record.SlicePort{{Name: "tcp", Protocol: "TCP", Port: 42}}}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, record.Endpoint{Address: address, Ready: true, Serving: true})
	}
	part, err := slice.Encode()
	require.NoError(l.T, err)
	digest := discovery.DigestOf(part)
	return record.Export{
		Namespace: l.namespace, Name: name, Created: time.Now().UTC().Truncate(time.Second), Type: string(v1beta1.ClusterSetIP),
		Ports: []record.Port{{Name: "tcp", Protocol: "TCP", Port: 42}}, SessionAffinity: "None", IPFamilies: []string{"IPv4"}, Parts: []discovery.Digest{digest},
	}, map[string][]byte{"parts/" + strings.TrimPrefix(string(digest), "sha256:"): part}
}

// publish signs a record, and puts it into a member's branch.
func (l *liar) publish(member string, edit func(*record.Record), parts map[string][]byte) {
	l.Helper()
	l.told++
	r := record.Record{
		Schema: record.Schema, ClusterSet: "prod", Cluster: l.cluster.Name(), ClusterUID: l.uid,
		Sequence: record.NextSequence(l.told, l.told, time.Now()), Issued: time.Now().UTC().Truncate(time.Millisecond), LeaseSeconds: 180,
	}
	l.told = r.Sequence
	edit(&r)
	payload, err := r.Encode()
	require.NoError(l.T, err)
	sealed, err := record.Seal(record.KindRecord, payload, l.key)
	require.NoError(l.T, err)
	files := map[string][]byte{"record": sealed}
	maps.Copy(files, parts)
	overwrite(l.T, member, files)
}

// isHeard says something new, and waits until a reader has taken it: all that was
// done to the registry before, it has seen.
func (l *liar) isHeard(reader *side) {
	l.Helper()
	l.told++
	name := fmt.Sprintf("heard-%d", l.told)
	export, parts := l.exports(name, l.cluster.Site.Pods().Addr().Next().Next().String())
	l.publish(l.cluster.Name(), func(r *record.Record) { r.Exports = []record.Export{export} }, parts)
	reader.imported(name, l.cluster.Name())
}

// overwrite makes a member's branch hold these files.
func overwrite(t *testing.T, member string, files map[string][]byte) {
	t.Helper()
	repo := gittest.NewRepo(t)
	for path, content := range files {
		repo.Write(path, string(content))
	}
	repo.Commit("anybody", nil)
	repo.Git("push", "--quiet", "--force", w.registry.URL, "HEAD:"+branch(member))
}

// overwriteParts gives all parts of a member other bytes.
func overwriteParts(t *testing.T, member string) {
	t.Helper()
	repo := gittest.NewRepo(t)
	repo.Git("fetch", "--quiet", w.registry.URL, branch(member))
	repo.Git("checkout", "--quiet", "FETCH_HEAD")
	parts := strings.Fields(repo.Git("ls-files", "parts"))
	require.NotEmpty(t, parts)
	for _, part := range parts {
		_, err := hex.DecodeString(strings.TrimPrefix(part, "parts/"))
		require.NoError(t, err)
		repo.Write(part, "{}")
	}
	repo.Commit("anybody", nil)
	repo.Git("push", "--quiet", "--force", w.registry.URL, "HEAD:"+branch(member))
}

func (s *side) peer(name string) v1alpha1.Peer {
	s.Helper()
	var found v1alpha1.Peer
	require.NoError(s.T, s.Client.Get(s.Context(), client.ObjectKey{Name: name}, &found))
	return found
}

// peerIs waits until a condition of a Peer is so.
func (s *side) peerIs(name, kind string, status metav1.ConditionStatus, reason string) {
	s.Helper()
	s.eventually(func(ctx context.Context) error {
		var found v1alpha1.Peer
		if err := s.Client.Get(ctx, client.ObjectKey{Name: name}, &found); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(found.Status.Conditions, kind); c == nil || c.Status != status || c.Reason != reason {
			return fmt.Errorf("%s of peer %s is %+v, not %s %s", kind, name, c, status, reason)
		}
		return nil
	})
}

// warned waits for a warning on a Peer.
func (s *side) warned(name, reason string) {
	s.Helper()
	s.eventually(func(ctx context.Context) error {
		var list eventsv1.EventList
		if err := s.Client.List(ctx, &list); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Regarding.Kind == "Peer" && e.Regarding.Name == name && e.Reason == reason && e.Type == corev1.EventTypeWarning {
				return nil
			}
		}
		return fmt.Errorf("of %d events none warns of %s on peer %s", len(list.Items), reason, name)
	})
}

// serviceAddress is one of the cluster's Service range.
func (s *side) serviceAddress() string {
	s.Helper()
	var list networkingv1.ServiceCIDRList
	require.NoError(s.T, s.Client.List(s.Context(), &list))
	require.NotEmpty(s.T, list.Items)
	address, _, found := strings.Cut(list.Items[0].Spec.CIDRs[0], "/")
	require.True(s.T, found)
	return address[:strings.LastIndex(address, ".")] + ".1"
}

// stopAgent stops the agent, which has published by then, until startAgent, or the
// end of the test.
func (s *side) stopAgent() {
	s.Helper()
	require.NoError(s.T, s.Condition(s.Context(), v1alpha1.Connected, "Connected"))
	s.Cleanup(s.startAgent)
	require.NoError(s.T, s.Agent.Stop())
}

func (s *side) startAgent() {
	s.Helper()
	if s.Agent.Check() != nil {
		require.NoError(s.T, s.Agent.Restart(false))
	}
}

// published is a member's record in the registry, as it stands now.
func published(t *testing.T, member string) record.Record {
	t.Helper()
	repo := gittest.NewRepo(t)
	repo.Git("fetch", "--quiet", w.registry.URL, branch(member))
	_, payload, err := record.Split([]byte(repo.Git("show", "FETCH_HEAD:record")))
	require.NoError(t, err)
	found, err := record.DecodeRecord(payload)
	require.NoError(t, err)
	return found
}

func branch(member string) string { return "refs/heads/members/" + member }
