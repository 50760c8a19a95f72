package capi

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func memberKey(t *testing.T) (private []byte, line string) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	require.NoError(t, err)
	converted, err := ssh.NewPublicKey(public)
	require.NoError(t, err)
	return pem.EncodeToMemory(block), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(converted)))
}

func TestCredentialsTravelInASetOfTheirOwn(t *testing.T) {
	private, line := memberKey(t)
	a, b := entryOf("a"), entryOf("b")
	a.MemberKeys, a.Namespace = []string{line}, "mgmt"
	made, err := Secrets([]Entry{a, b}, map[string]Credentials{
		"a": {Git: map[string][]byte{"username": []byte("fleet"), "password": []byte("hunter2")}, MemberKey: private},
	}, target())
	require.NoError(t, err)
	require.Len(t, made, 2, "b has none")
	secret, set := made[0], made[1]
	assert.Equal(t, "Secret/mgmt/fleetling-credentials-a", secret.String())
	assert.Equal(t, "addons.cluster.x-k8s.io/resource-set", secret.Object["type"])
	strategy, _, _ := unstructured.NestedString(set.Object, "spec", "strategy")
	assert.Equal(t, "Reconcile", strategy)
	selector, _, _ := unstructured.NestedStringMap(set.Object, "spec", "clusterSelector", "matchLabels")
	assert.Equal(t, map[string]string{"fleetling.dev/cluster": "a"}, selector)

	data, _, _ := unstructured.NestedStringMap(secret.Object, "data")
	require.Len(t, data, 1)
	text, err := base64.StdEncoding.DecodeString(data["credentials.yaml"])
	require.NoError(t, err)
	inside, err := Read("", text)
	require.NoError(t, err)
	require.Len(t, inside, 2)
	assert.Equal(t, "Secret/fleetling-system/fleetling-git", inside[0].String())
	git, _, _ := unstructured.NestedStringMap(inside[0].Object, "data")
	assert.Equal(t, map[string]string{
		"username": base64.StdEncoding.EncodeToString([]byte("fleet")), "password": base64.StdEncoding.EncodeToString([]byte("hunter2")),
	}, git)
	assert.Equal(t, "Secret/fleetling-system/fleetling-member-key", inside[1].String())
	key, _, _ := unstructured.NestedStringMap(inside[1].Object, "data")
	assert.Equal(t, map[string]string{"identity": base64.StdEncoding.EncodeToString(private)}, key)
}

func TestCredentialsThatWouldNotWorkAreRefused(t *testing.T) {
	private, _ := memberKey(t)
	for name, c := range map[string]struct {
		credentials Credentials
		want        string
	}{
		"a file that the agent does not read": {Credentials{Git: map[string][]byte{"id_rsa": []byte("hunter2")}}, `"id_rsa" is none of`},
		"a key that the entry does not have":  {Credentials{MemberKey: private}, "does not have the public half"},
		"a key that is none":                  {Credentials{MemberKey: []byte("hunter2")}, "not a private key"},
		"a key that is too long":              {Credentials{MemberKey: make([]byte, maxKeyLength+1)}, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Secrets([]Entry{entryOf("a")}, map[string]Credentials{"a": c.credentials}, target())
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "hunter2")
			assert.NotContains(t, err.Error(), "PRIVATE KEY")
		})
	}
}

func TestTheBundleHoldsNoSecret(t *testing.T) {
	bundle, err := Bundle(installed(t), []Entry{entryOf("a")}, target())
	require.NoError(t, err)
	text, err := Text(bundle)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "kind: Secret\n")
}
