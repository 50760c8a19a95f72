package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/agent/desired"
	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/fleet"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/gittest"
	"github.com/fleetling/fleetling/sources/render"
)

// fixture is a source loop on a real repository, and a keeper on a fake API.
type fixture struct {
	t      *testing.T
	repo   *gittest.Repo
	server *gittest.HTTPServer
	key    gittest.Key
	loop   *sourceLoop
	news   int
	// mounted is the ConfigMap of the identity as the API server shows it, nodeName
	// what Cluster API has written on the nodes.
	mounted  *corev1.ConfigMap
	nodeName string
	// listed are the fleet files that the ClusterSet was told of.
	listed []fleet.Fleet
}

const oneAddOn = `apiVersion: config.fleetling.dev/v1alpha1
kind: Fleet
clusterSet: prod
clusters: {files: ["clusters/*.yaml"], unlisted: identity}
labels: {region: {required: true, values: [ap, eu]}}
addons: [{name: web, path: "addons/{{labels.region}}", when: {matchLabels: {region: ap}}}]
`

func configMapNamed(name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop}\ndata: {value: " + value + "}\n"
}

func entryFor(name, region string) string {
	return "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata:\n  name: " + name + "\n  labels: {region: " + region + "}\n"
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, repo: gittest.NewRepo(t), key: gittest.NewSSHKey(t, "alice", "ed25519")}
	f.repo.Write("signers/alice.pub", f.key.Public())
	f.repo.Write("fleetling.yaml", oneAddOn)
	f.repo.Write("clusters/other.yaml", entryFor("other", "eu"))
	f.repo.Write("addons/ap/cm.yaml", configMapNamed("a", "one"))
	f.server = gittest.ServeHTTP(t, f.repo.Dir, gittest.HTTPOptions{})
	signers, identity := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(signers, "alice.pub"), []byte(f.key.Public()), 0o600))
	clientset := fake.NewClientset()
	scheme, err := newScheme()
	require.NoError(t, err)
	metrics, err := newMetrics(prometheus.NewRegistry())
	require.NoError(t, err)
	config := Config{
		Remote:   git.Remote{URL: f.server.URL, Branch: "refs/heads/main", Timeout: time.Minute, Limits: sources.DefaultLimits()},
		Interval: time.Hour, StaleAfter: 24 * time.Hour, Identity: filepath.Join(identity, "identity.yaml"),
	}
	f.loop = &sourceLoop{
		listed: func(listed fleet.Fleet, _ string) { f.listed = append(f.listed, listed) },
		config: config, keeper: &keeper{pins: &pins{client: clientset.CoreV1().ConfigMaps(Namespace)}, snapshots: snapshots{clientset.CoreV1().Secrets(Namespace)}},
		board: &board{}, members: ctrlfake.NewClientBuilder().WithScheme(scheme).Build(), metrics: metrics, pace: newPace(time.Hour), turn: &sync.Mutex{}, rest: &atRest{giveBack: func() {}},
		identity: func() *corev1.ConfigMap { return f.mounted }, nodes: func(context.Context) (string, error) { return f.nodeName, nil },
		posted:   func() { f.news++ },
		pipeline: &desired.Pipeline{Fetcher: git.Fetch, Remote: config.Remote, DataDir: t.TempDir(), Signers: signers, Renderer: render.New(sources.DefaultLimits())},
	}
	f.identity("region: ap")
	return f
}

func (f *fixture) identity(labels string) {
	f.t.Helper()
	text := "apiVersion: config.fleetling.dev/v1alpha1\nkind: Identity\nname: one\nclusterSet: prod\nlabels: {" + labels + "}\n"
	require.NoError(f.t, os.WriteFile(f.loop.config.Identity, []byte(text), 0o600))
}

// look lets the loop look once, and keeps the pin as the pass loop would.
func (f *fixture) look() findings {
	f.t.Helper()
	_, err := f.loop.Reconcile(f.t.Context(), ctrl.Request{})
	require.NoError(f.t, err)
	found := f.loop.board.read()
	if found.verified != nil {
		listed := found.selection != nil && found.selection.Listed
		if current, err := f.loop.keeper.current(f.t.Context()); err == nil && current != nil {
			listed = listed || current.Listed
		}
		next := pin{Pin: found.verified.Pin, Signer: found.verified.Signer, Identity: found.told.identity, Listed: listed}
		var active []content
		if found.targets != nil {
			plan := rollOut(nil, found.targets, nil)
			active, next.Selection, next.Whole = plan.active, found.selection, plan.wanted.Whole
		}
		require.NoError(f.t, f.loop.keeper.keep(f.t.Context(), next, active))
	}
	return found
}

func digestsOf(f findings) map[string]string {
	digests := map[string]string{}
	for _, t := range f.targets {
		digests[t.name] = t.content.Digest
	}
	return digests
}

func TestTheClusterSetIsToldOfTheFleetFile(t *testing.T) {
	f := newFixture(t)
	f.repo.Commit("first", f.key)
	f.look()
	require.NotEmpty(t, f.listed)
	assert.Equal(t, "prod", f.listed[0].ClusterSet)
}

func TestASignedHeadBecomesTargets(t *testing.T) {
	f := newFixture(t)
	head := f.repo.Commit("first", f.key)
	found := f.look()
	require.NoError(t, errors.Join(found.contact, found.refusal, found.selectErr, found.told.err))
	require.NotNil(t, found.verified)
	assert.Equal(t, head, found.verified.Commit)
	assert.True(t, found.verified.Introduced)
	require.Len(t, found.targets, 1)
	assert.Equal(t, "addons/ap", found.targets[0].path)
	assert.Len(t, found.targets[0].content.objects, 1)
	assert.Equal(t, 1, f.news)
	f.look()
	assert.Equal(t, 1, f.news, "nothing new is no news")
}

func TestARefusedHeadLeavesTheVerifiedOneAndIsTakenWhenMended(t *testing.T) {
	f := newFixture(t)
	first := f.repo.Commit("first", f.key)
	f.look()
	f.repo.Write("addons/ap/cm.yaml", configMapNamed("a", "evil"))
	f.repo.Commit("unsigned", nil)
	found := f.look()
	assert.Equal(t, sources.Unsigned, sources.ReasonOf(found.refusal))
	assert.Equal(t, first, found.verified.Commit)
	require.Len(t, found.targets, 1)
	assert.Contains(t, string(found.targets[0].content.objects[0].Body), "one")

	f.repo.Git("reset", "--quiet", "--hard", first)
	f.repo.Write("addons/ap/cm.yaml", configMapNamed("a", "two"))
	second := f.repo.Commit("signed", f.key)
	found = f.look()
	require.NoError(t, found.refusal)
	assert.Equal(t, second, found.verified.Commit)
	assert.Contains(t, string(found.targets[0].content.objects[0].Body), "two")
}

func TestARewoundBranchIsRefused(t *testing.T) {
	f := newFixture(t)
	first := f.repo.Commit("first", f.key)
	second := f.repo.Commit("second", f.key)
	f.look()
	f.repo.Git("reset", "--quiet", "--hard", first)
	found := f.look()
	assert.Equal(t, sources.HistoryRewound, sources.ReasonOf(found.refusal))
	assert.Equal(t, second, found.verified.Commit)

	restarted := *f.loop
	restarted.board = &board{}
	f.loop = &restarted
	found = f.look()
	assert.Equal(t, sources.HistoryRewound, sources.ReasonOf(found.refusal), "after a restart, too")
	require.NotNil(t, found.verified)
	assert.Equal(t, second, found.verified.Commit, "the pin stands")
	assert.Equal(t, "alice", found.verified.Signer.Name)
	assert.Len(t, found.targets, 1, "and what it wants is known")

	f.loop.pipeline.DataDir = t.TempDir() // the clone of a new Pod holds the rewound branch only
	f.loop.board = &board{}
	found = f.look()
	assert.Equal(t, sources.HistoryRewound, sources.ReasonOf(found.refusal))
	assert.Len(t, found.targets, 1, "from the snapshot")
}

func TestAStartWithoutGitAndWithoutACloneKnowsPinAndSnapshot(t *testing.T) {
	f := newFixture(t)
	first := f.repo.Commit("first", f.key)
	before := f.look()
	f.server.SetDown(true)
	f.loop.board, f.loop.pipeline.DataDir = &board{}, t.TempDir()
	found := f.look()
	assert.Error(t, found.contact)
	require.NotNil(t, found.verified)
	assert.Equal(t, first, found.verified.Commit)
	require.NoError(t, errors.Join(found.refusal, found.selectErr))
	assert.Equal(t, digestsOf(before), digestsOf(found), "from the snapshot")
	assert.Equal(t, before.selection, found.selection)
	f.identity("region: eu")
	f.loop.board = &board{}
	found = f.look()
	assert.Nil(t, found.targets, "what another identity wants can't be told")
	f.identity("region: ap")
	f.server.SetDown(false)
	found = f.look()
	require.NoError(t, errors.Join(found.contact, found.refusal, found.selectErr))
	assert.Len(t, found.targets, 1)
}

func TestF6_AKeyRevokedSinceIsSaidAlthoughTheHeadIsTheSame(t *testing.T) {
	f := newFixture(t)
	first := f.repo.Commit("first", f.key)
	fingerprint := f.look().verified.Signer.Fingerprint
	f.loop.board = &board{}
	f.loop.pipeline.Revoked = []string{fingerprint}
	found := f.look()
	assert.Equal(t, sources.RevokedKey, sources.ReasonOf(found.refusal))
	assert.Equal(t, first, found.verified.Commit, "what is applied stays")
}

func TestASilentServerChangesNothingAndAChangedIdentityIsStillAnswered(t *testing.T) {
	f := newFixture(t)
	f.repo.Write("fleetling.yaml", `apiVersion: config.fleetling.dev/v1alpha1
kind: Fleet
clusterSet: prod
clusters: {files: ["clusters/*.yaml"], unlisted: identity}
labels: {region: {required: true, values: [ap, eu]}}
addons: [{name: web, path: "addons/{{labels.region}}"}]
`)
	f.repo.Write("addons/eu/cm.yaml", configMapNamed("b", "eu"))
	f.repo.Commit("first", f.key)
	before := f.look()
	f.server.SetDown(true)
	found := f.look()
	assert.Equal(t, sources.Unreachable, sources.ReasonOf(found.contact))
	assert.Equal(t, digestsOf(before), digestsOf(found))
	f.identity("region: eu")
	found = f.look()
	assert.Error(t, found.contact)
	require.Len(t, found.targets, 1)
	assert.Equal(t, "addons/eu", found.targets[0].path, "from the clone on disk")

	f.server.SetDown(false)
	found = f.look()
	assert.NoError(t, found.contact, "it recovers by itself")
}

func TestASourceIsStaleOnlyAfterALongSilence(t *testing.T) {
	f := newFixture(t)
	f.repo.Commit("first", f.key)
	last := f.look()
	f.server.SetDown(true)
	pinned, err := f.loop.keeper.current(t.Context())
	require.NoError(t, err)
	found := f.loop.look(t.Context(), last, pinned, last.lastContact.Add(f.loop.config.StaleAfter))
	assert.False(t, found.stale)
	found = f.loop.look(t.Context(), last, pinned, last.lastContact.Add(f.loop.config.StaleAfter+time.Second))
	assert.True(t, found.stale)
	assert.False(t, found.sameNews(last))
}

func TestWhatCannotBeSelectedIsNotKnownAndIsNotNothing(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(f *fixture)
		reason sources.Reason
	}{
		"a broken fleet file":             {func(f *fixture) { f.repo.Write("fleetling.yaml", "kind: [") }, sources.InvalidFleetFile},
		"an unknown key":                  {func(f *fixture) { f.repo.Write("fleetling.yaml", oneAddOn+"surprise: true\n") }, sources.UnknownField},
		"a path that is gone (F16)":       {func(f *fixture) { f.repo.Remove("addons/ap") }, sources.PathNotFound},
		"labels that select nothing more": {func(f *fixture) { f.identity("region: eu") }, sources.EmptySelector},
		"a label that is missing (P7)":    {func(f *fixture) { f.identity("odd: x") }, sources.MissingLabel},
		"no entry where there was one":    {func(f *fixture) { f.repo.Remove("clusters/one.yaml") }, sources.NotListed},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if c.reason == sources.NotListed {
				f.repo.Write("clusters/one.yaml", entryFor("one", "ap"))
			}
			f.repo.Commit("first", f.key)
			before := f.look()
			require.Len(t, before.targets, 1)
			c.spoil(f)
			f.repo.Commit("second", f.key)
			found := f.look()
			assert.Equal(t, c.reason, sources.ReasonOf(found.selectErr), "%v", found.selectErr)
			assert.Nil(t, found.targets)
			assert.Equal(t, before.selection, found.selection, "the last one is still shown")
		})
	}
}

func TestAnAddOnThatDoesNotRenderLeavesTheOthersAlone(t *testing.T) {
	f := newFixture(t)
	f.repo.Write("fleetling.yaml", `apiVersion: config.fleetling.dev/v1alpha1
kind: Fleet
clusterSet: prod
clusters: {files: ["clusters/*.yaml"], unlisted: identity}
labels: {region: {required: true, values: [ap, eu]}}
addons: [{name: bad, path: addons/bad}, {name: web, path: addons/ap}]
`)
	f.repo.Write("addons/bad/cm.yaml", "piVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: shop}\n")
	f.repo.Commit("first", f.key)
	found := f.look()
	require.NoError(t, found.selectErr)
	require.Len(t, found.targets, 2)
	assert.Equal(t, sources.RenderFailed, sources.ReasonOf(found.targets[0].err))
	assert.ErrorContains(t, found.targets[0].err, "addons/bad/cm.yaml")
	assert.NoError(t, found.targets[1].err)
}

func TestADeletedPinIntroducesTheAgentAgain(t *testing.T) {
	f := newFixture(t)
	f.repo.Commit("first", f.key)
	f.look()
	f.repo.Git("checkout", "--quiet", "--orphan", "other")
	f.repo.Git("branch", "--delete", "--force", "main")
	f.repo.Git("branch", "--move", "main")
	again := f.repo.Commit("a new history", f.key)
	found := f.look()
	assert.Equal(t, sources.HistoryRewound, sources.ReasonOf(found.refusal))
	f.loop.keeper.forget()
	f.loop.keeper.pins.client = fake.NewClientset().CoreV1().ConfigMaps(Namespace)
	found = f.look()
	require.NoError(t, found.refusal)
	assert.Equal(t, again, found.verified.Commit)
	assert.True(t, found.verified.Introduced)
}

func TestReconcileAtIsAnswered(t *testing.T) {
	f := newFixture(t)
	f.repo.Commit("first", f.key)
	f.look()
	writer, ok := f.loop.members.(client.Client)
	require.True(t, ok)
	member := &v1alpha1.Member{}
	member.Name, member.Annotations = v1alpha1.Self, map[string]string{v1alpha1.ReconcileAtAnnotation: "now"}
	require.NoError(t, writer.Create(t.Context(), member))
	found := f.look()
	assert.Equal(t, "now", found.handled)
	assert.Equal(t, 2, f.news, "the echo is news")
}

func TestALookThatIsCutOffPostsNothing(t *testing.T) {
	f := newFixture(t)
	f.repo.Commit("first", f.key)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.loop.Reconcile(ctx, ctrl.Request{})
	assert.ErrorIs(t, err, context.Canceled)
	assert.Nil(t, f.loop.board.read().verified)
	assert.Zero(t, f.news)
}

func TestThePaceGrowsAfterFailuresAndIsBackAtOnce(t *testing.T) {
	p := newPace(30 * time.Second)
	for range 100 {
		next := p.next(false)
		assert.GreaterOrEqual(t, next, 27*time.Second)
		assert.LessOrEqual(t, next, 33*time.Second)
	}
	var last time.Duration
	for range 30 {
		last = p.next(true)
		assert.Positive(t, last, "it never gives up")
		assert.LessOrEqual(t, last, 450*time.Second)
	}
	assert.Greater(t, last, time.Minute)
	assert.LessOrEqual(t, p.next(false), 33*time.Second)
	assert.Less(t, p.next(true), 2*time.Second)
}

func TestC5LabelsThatVanishAndComeBackChangeNothing(t *testing.T) {
	f := newFixture(t)
	f.repo.Commit("first", f.key)
	text := func(labels string) map[string]string {
		return map[string]string{identityKey: "{apiVersion: config.fleetling.dev/v1alpha1, kind: Identity, name: one, clusterSet: prod" + labels + "}"}
	}
	good := text(", labels: {region: ap}")
	f.mounted = &corev1.ConfigMap{Data: good}
	before := f.look()
	require.Len(t, before.targets, 1)
	for name, data := range map[string]map[string]string{
		"labels gone":      text(""),
		"labels null":      text(", labels: null"),
		"the key gone":     {},
		"the key emptied":  {identityKey: ""},
		"no YAML any more": {identityKey: "name: ["},
	} {
		f.mounted = &corev1.ConfigMap{Data: data}
		found := f.look()
		assert.Error(t, found.told.err, name)
		assert.NoError(t, found.selectErr, name)
		assert.Equal(t, digestsOf(before), digestsOf(found), name)
		assert.True(t, rollOut(nil, found.targets, nil).wanted.Whole, "%s: it is not unknown, it is as it was", name)
	}
	restarted := f.loop.board
	f.loop.board = &board{}
	found := f.look()
	assert.Equal(t, digestsOf(before), digestsOf(found), "after a restart, too")
	f.loop.board = restarted
	f.mounted = &corev1.ConfigMap{Data: good}
	found = f.look()
	require.NoError(t, errors.Join(found.told.err, found.selectErr))
	assert.Equal(t, digestsOf(before), digestsOf(found), "it recovers without a change")
}

func TestANameThatDiffersFromTheNodesHoldsUntilItIsMended(t *testing.T) {
	f := newFixture(t)
	f.repo.Commit("first", f.key)
	f.nodeName = "two"
	found := f.look()
	assert.Equal(t, sources.IdentityDiffers, sources.ReasonOf(found.selectErr))
	assert.Nil(t, found.targets)
	f.nodeName = "one"
	found = f.look()
	require.NoError(t, found.selectErr)
	assert.Len(t, found.targets, 1)
}

func TestANameAloneGoesAsFarAsTheEntry(t *testing.T) {
	f := newFixture(t)
	require.NoError(t, os.Remove(f.loop.config.Identity))
	f.repo.Commit("first", f.key)
	f.nodeName = "one"
	found := f.glance(t)
	assert.Equal(t, sources.IdentityMissing, sources.ReasonOf(found.selectErr), "%v", found.selectErr)
	assert.ErrorContains(t, found.selectErr, "no entry for cluster one")
	assert.Nil(t, found.targets)

	f.repo.Write("clusters/one.yaml", entryFor("one", "ap"))
	f.repo.Commit("second", f.key)
	found = f.glance(t)
	require.NoError(t, found.selectErr)
	assert.Len(t, found.targets, 1)
	assert.True(t, found.told.nameOnly)
	assert.Equal(t, "prod", found.selection.ClusterSet)
	found = f.glance(t)
	assert.True(t, found.told.nameOnly, "a name is never taken for the last good identity")

	f.identity("region: ap")
	found = f.glance(t)
	require.NoError(t, errors.Join(found.told.err, found.selectErr))
	assert.False(t, found.told.nameOnly)
}

// glance looks without keeping a pin.
func (f *fixture) glance(t *testing.T) findings {
	t.Helper()
	_, err := f.loop.Reconcile(t.Context(), ctrl.Request{})
	require.NoError(t, err)
	return f.loop.board.read()
}

func TestWhatABackupOfAnotherClusterBroughtHoldsUntilItIsDeleted(t *testing.T) {
	f := newFixture(t)
	f.repo.Commit("first", f.key)
	uid := "there"
	f.loop.keeper.cluster = func(context.Context) (string, error) { return uid, nil }
	require.Len(t, f.look().targets, 1)

	uid = "here"
	f.loop.keeper, f.loop.board = f.loop.keeper.another(), &board{}
	found := f.glance(t)
	assert.Equal(t, sources.IdentityDiffers, sources.ReasonOf(found.selectErr))
	assert.ErrorContains(t, found.selectErr, "delete it to have the agent introduced here")
	assert.True(t, found.stranger())
	assert.Nil(t, found.targets)
	passes := &passLoop{keeper: f.loop.keeper, board: f.loop.board}
	require.NoError(t, passes.restore(t.Context()))
	assert.Empty(t, passes.kept.active, "the other's snapshot is not repaired here")
	o := outcome{found: found, now: noon}
	assert.Contains(t, summary(o.memberConditions()), "Ready=False IdentityDiffers")

	require.NoError(t, f.loop.keeper.pins.client.Delete(t.Context(), pinName, metav1.DeleteOptions{}))
	found = f.look()
	require.NoError(t, found.selectErr)
	assert.Len(t, found.targets, 1)
	pinned, err := f.loop.keeper.current(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "here", pinned.Cluster)
}
