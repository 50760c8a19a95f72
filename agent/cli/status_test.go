package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
)

func seen() overview {
	yes := func(kind, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
	}
	no := func(kind, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	return overview{
		Member: v1alpha1.Member{
			ObjectMeta: metav1.ObjectMeta{Name: "self"},
			Status: v1alpha1.MemberStatus{
				Identity: &v1alpha1.Identity{Name: "prod-ap-south", ClusterSet: "prod", Labels: []v1alpha1.Label{{Key: "region", Value: "ap-south", Origin: "entry"}}},
				Source:   &v1alpha1.Source{URL: "https://git.example.com/fleet.git", Branch: "refs/heads/main"},
				Revision: &v1alpha1.Revision{Short: "0123456789ab", Signer: "alice", Fingerprint: "SHA256:x", SignedAt: metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))},
				Conditions: []metav1.Condition{
					no("SourceReady", "Unreachable", "no connection"), yes("Verified", "Verified", "signed"),
					yes("Selected", "IdentityDiffers", "region differs"), no("Ready", "Denied", "add-on shop: a Pod is refused"),
				},
				Strays: []string{"ConfigMap/shop/old"},
			},
		},
		AddOns: []v1alpha1.AddOn{
			{ObjectMeta: metav1.ObjectMeta{Name: "base"}, Status: v1alpha1.AddOnStatus{
				Path: "addons/base", RevisionShort: "0123456789ab", Objects: v1alpha1.AddOnObjects{Total: 3, Ready: 3, Summary: "3/3"},
				Conditions: []metav1.Condition{yes("Ready", "Ready", "fine")},
			}},
			{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Status: v1alpha1.AddOnStatus{
				Path: "addons/shop", RevisionShort: "0123456789ab", Objects: v1alpha1.AddOnObjects{Total: 2, Ready: 1, Failed: 1, Held: 7, Summary: "1/2"},
				Failures:   []v1alpha1.Failure{{Object: "Pod/shop/root", File: "addons/shop/pod.yaml:3", Reason: "Denied", Message: "privileged: change the object or the policy that refuses it"}},
				Held:       &v1alpha1.HeldDeletions{Count: 7, Digest: "sha256:h", Why: "7 of 9 objects would be deleted", Objects: []string{"ConfigMap/shop/a"}},
				Conditions: []metav1.Condition{no("Ready", "Denied", "a Pod is refused")},
			}},
		},
	}
}

func TestStatusReadsAtAGlance(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, seen().show(&out, ""))
	want := `Cluster:      prod-ap-south (ClusterSet prod)
Labels:       region=ap-south (entry)
Source:       https://git.example.com/fleet.git refs/heads/main
Revision:     0123456789ab, signed by alice (SHA256:x) at 2026-05-01 12:00:00 UTC
Ready:        False (Denied): add-on shop: a Pod is refused
SourceReady:  False (Unreachable): no connection
Selected:     True (IdentityDiffers): region differs
Strays:       ConfigMap/shop/old: labelled as ours, and nothing accounts for them; they are left alone

ADD-ON  READY  REASON  OBJECTS  FAILED  HELD  REVISION      PATH
base    True   Ready   3/3      0       0     0123456789ab  addons/base
shop    False  Denied  1/2      1       7     0123456789ab  addons/shop

shop: Denied: a Pod is refused
  Denied  Pod/shop/root  addons/shop/pod.yaml:3
    privileged: change the object or the policy that refuses it
  held: 7 of 9 objects would be deleted (sha256:h)
    ConfigMap/shop/a
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStatusIsDataToo(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, seen().show(&out, "json"))
	var fromJSON overview
	require.NoError(t, json.Unmarshal(out.Bytes(), &fromJSON))
	assert.Equal(t, "prod-ap-south", fromJSON.Member.Status.Identity.Name)
	out.Reset()
	require.NoError(t, seen().show(&out, "yaml"))
	var fromYAML overview
	require.NoError(t, yaml.Unmarshal(out.Bytes(), &fromYAML))
	assert.Equal(t, fromJSON, fromYAML)
	assert.ErrorContains(t, seen().show(&out, "xml"), "json or yaml")
}

func TestExitCodesTellNotGoodFromCouldNotTell(t *testing.T) {
	run := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		code := Run(t.Context(), args, World{Out: &out, Err: &errs})
		return code, out.String() + errs.String()
	}
	code, text := run("version")
	assert.Zero(t, code)
	assert.True(t, strings.HasPrefix(text, "fleetling "))
	code, text = run("status", "--kubeconfig", t.TempDir()+"/none")
	assert.Equal(t, 2, code)
	assert.Contains(t, text, "none")
	code, text = run("agent", "--config", t.TempDir()+"/none.yaml", "--kubeconfig", t.TempDir()+"/none")
	assert.Equal(t, 2, code)
	assert.NotEmpty(t, text)
	code, text = run("surprise")
	assert.Equal(t, 2, code)
	assert.Contains(t, text, "surprise")
	code, text = run("probe", "--ready", "--data-dir", t.TempDir())
	assert.Equal(t, 1, code, "nobody there is no good")
	assert.Contains(t, text, "does not answer")
	code, _ = run("agent", "--log-level", "loud")
	assert.Equal(t, 2, code)
}
