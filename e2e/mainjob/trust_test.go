package mainjob_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/e2e/world"
	"github.com/fleetling/fleetling/sources/gittest"
)

// taken lets a signed commit in, and waits until it is applied.
func (s *scenario) taken(value string, key gittest.Key) string {
	s.Helper()
	s.fleet.Write("addons/base/cm.yaml", configMap("cm", value))
	revision := s.fleet.Commit(value, key)
	s.do(s.m.Ready(s.Context(), revision))
	_, err := s.m.ConfigMap(s.Context(), "shop", "cm", "value", value)
	s.do(err)
	return revision
}

// refused waits until the head is refused for a reason, also by a new process,
// and sees that nothing changed. Then it takes the branch back.
func (s *scenario) refused(reason, good string) {
	s.Helper()
	before := s.versions()
	s.do(s.m.Condition(s.Context(), v1alpha1.Verified, reason))
	s.do(s.m.Agent.Restart(true))
	s.do(s.m.Reconcile(s.Context()))
	s.do(s.m.Condition(s.Context(), v1alpha1.Verified, reason))
	self, err := s.m.Self(s.Context())
	s.do(err)
	verified := meta.FindStatusCondition(self.Status.Conditions, v1alpha1.Verified)
	assert.NotEmpty(s, verified.Message)
	assert.Equal(s, good, self.Status.Revision.Commit, "%s: the last verified revision counts", reason)
	assert.True(s, meta.IsStatusConditionTrue(self.Status.Conditions, v1alpha1.Ready), "%s: and is still applied", reason)
	assert.Equal(s, before, s.versions(), reason)
	s.fleet.Git("reset", "--quiet", "--hard", good)
	s.do(s.m.Condition(s.Context(), v1alpha1.Verified, "Verified"))
}

func TestOnlyCommitsOfSignersCountAndHistoryGoesForward(t *testing.T) {
	s := newScenario(t, 1)
	s.addOns("{name: base, path: addons/base}")
	s.fleet.Write("addons/base/ns.yaml", namespace("shop"))
	s.fleet.Write("addons/base/cm.yaml", configMap("cm", "first"))
	release := gittest.NewPGPKey(t, "release", "ed25519", "0")
	revoked := gittest.NewSSHKey(t, "revoked", "ed25519")
	for _, key := range []gittest.Key{release, revoked} {
		s.fleet.Write("signers/"+key.File(), key.Public())
	}
	s.fleet.Push("first")
	s.join(func(o *world.MemberOptions) {
		o.Edit = func(config map[string]any) {
			config["trust"].(map[string]any)["revoked"] = []string{fingerprint(t, revoked)}
		}
	})
	s.taken("by an SSH key", s.fleet.Key)
	good := s.taken("by an OpenPGP key", release)

	stranger := gittest.NewSSHKey(t, "stranger", "ed25519")
	for reason, key := range map[string]gittest.Key{"Unsigned": nil, "UnknownKey": stranger, "RevokedKey": revoked} {
		s.fleet.Write("addons/base/cm.yaml", configMap("cm", "evil"))
		s.fleet.Commit("evil", key)
		s.refused(reason, good)
	}

	s.fleet.Git("reset", "--quiet", "--hard", "HEAD~1")
	s.refused("HistoryRewound", good)
	s.fleet.Git("checkout", "--quiet", "--orphan", "fork")
	s.fleet.Commit("another history", s.fleet.Key)
	s.fleet.Git("branch", "--move", "--force", "main")
	s.refused("HistoryRewound", good)

	// The signature of a good commit under other content.
	s.fleet.Write("addons/base/cm.yaml", configMap("cm", "grafted"))
	s.fleet.Commit("honest", s.fleet.Key)
	honest := s.fleet.Git("cat-file", "commit", "HEAD")
	grafted := s.fleet.GitInput(strings.TrimSuffix(honest, "honest")+"grafted\n", "hash-object", "-t", "commit", "-w", "--stdin")
	s.fleet.Git("reset", "--quiet", "--hard", grafted)
	s.refused("BadSignature", good)

	// A key comes and one goes, by commits that present keys sign; a revert is
	// a commit like any other.
	second := gittest.NewSSHKey(t, "second", "ed25519")
	s.fleet.Write("signers/"+second.File(), second.Public())
	s.taken("a key comes", release)
	s.fleet.Remove("signers/" + s.fleet.Key.File())
	good = s.taken("the first key goes", second)
	s.fleet.Write("addons/base/cm.yaml", configMap("cm", "evil"))
	s.fleet.Commit("by the key that went", s.fleet.Key)
	s.refused("UnknownKey", good)
	s.fleet.Write("addons/base/cm.yaml", configMap("cm", "a mistake"))
	s.taken("a mistake", second)
	s.fleet.Git("checkout", "--quiet", good, "--", "addons")
	revert := s.fleet.Commit("revert", second)
	s.do(s.m.Ready(t.Context(), revert))
	_, err := s.m.ConfigMap(t.Context(), "shop", "cm", "value", "the first key goes")
	s.do(err)
}

func fingerprint(t *testing.T, key *gittest.SSHKey) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-lf", key.Private+".pub").Output()
	require.NoError(t, err)
	words := strings.Fields(string(out))
	require.Greater(t, len(words), 1)
	return words[1]
}

func TestWeakAndExpiredKeysAreRefused(t *testing.T) {
	s := newScenario(t, 1)
	s.addOns("{name: base, path: addons/base}")
	s.fleet.Write("addons/base/ns.yaml", namespace("shop"))
	s.fleet.Write("addons/base/cm.yaml", configMap("cm", "first"))
	weak := gittest.NewSSHKey(t, "weak", "rsa", "-b", "1024")
	expired := gittest.NewSSHKey(t, "expired", "ed25519")
	s.fleet.Write("signers/"+weak.File(), weak.Public())
	s.fleet.Write("signers/"+expired.File(), `expired@example.com valid-before="20200101" `+expired.Public())
	good := s.fleet.Push("first")
	s.join()
	s.do(s.m.Ready(t.Context(), good))
	for reason, key := range map[string]gittest.Key{"WeakAlgorithm": weak, "ExpiredKey": expired} {
		s.fleet.Write("addons/base/cm.yaml", configMap("cm", "evil"))
		s.fleet.Commit("evil", key)
		s.refused(reason, good)
	}
}
