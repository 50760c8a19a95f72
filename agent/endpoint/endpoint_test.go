package endpoint

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

func TestCandidates(t *testing.T) {
	for name, c := range map[string]struct {
		hints Hints
		want  []Candidate
		err   string
	}{
		"nothing known is nothing to ask": {},
		"all, in order": {
			hints: Hints{"https://a:1", "https://b:2", "192.0.2.1", "https://10.96.0.1:443", "https://d:4"},
			want: []Candidate{
				{"https://a:1", Environment},
				{"https://b:2", Identity},
				{"https://192.0.2.1:6443", Node},
				{"https://10.96.0.1:443", InCluster},
				{"https://d:4", Remembered},
			},
		},
		"each address once, by who is believed first": {
			hints: Hints{Identity: "https://192.0.2.1:6443", NodeIP: "192.0.2.1", InCluster: "https://10.96.0.1:443", Remembered: "https://10.96.0.1:443"},
			want:  []Candidate{{"https://192.0.2.1:6443", Identity}, {"https://10.96.0.1:443", InCluster}},
		},
		"a node may speak IPv6":                     {hints: Hints{NodeIP: "2001:db8::1"}, want: []Candidate{{"https://[2001:db8::1]:6443", Node}}},
		"a hint that is none leaves the others":     {hints: Hints{Environment: "a:1", NodeIP: "192.0.2.1"}, want: []Candidate{{"https://192.0.2.1:6443", Node}}, err: "by environment: write it as https://HOST:PORT"},
		"nobody is asked without TLS":               {hints: Hints{Identity: "http://a:1"}, err: "by identity"},
		"nor with somebody else's credentials":      {hints: Hints{Identity: "https://u:p@a:1"}, err: "by identity"},
		"nor at a path":                             {hints: Hints{Remembered: "https://a:1/x"}, err: "by remembered"},
		"a node's address is an address":            {hints: Hints{NodeIP: "node-1"}, err: "address of the node"},
		"what client-go made is taken as it stands": {hints: Hints{InCluster: "https://proxy/k8s/clusters/c-1"}, want: []Candidate{{"https://proxy/k8s/clusters/c-1", InCluster}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Candidates(c.hints)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.err)
			assert.NotContains(t, err.Error(), "u:p")
		})
	}
}

func TestTheFirstInOrderThatAnswersWins(t *testing.T) {
	candidates := []Candidate{{"https://a:1", Environment}, {"https://b:2", Node}, {"https://c:3", InCluster}}
	no := errors.New("no")
	got, ok := First(candidates, []error{no, nil, nil})
	assert.True(t, ok)
	assert.Equal(t, candidates[1], got)
	_, ok = First(candidates, []error{no, no, no})
	assert.False(t, ok)
}

// answering is an API server that answers with a status, and the authority that
// signed it.
func answering(t *testing.T, status int) (*httptest.Server, []byte) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/livez" {
			status = http.StatusTeapot
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func TestC3TheAddressThatAnswersIsFoundWithoutKubeProxy(t *testing.T) {
	server, authority := answering(t, http.StatusForbidden)
	gone := httptest.NewTLSServer(nil)
	gone.Close()
	config := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
	chosen, err := Choose(t.Context(), config, []Candidate{{gone.URL, InCluster}, {server.URL, Node}})
	require.NoError(t, err)
	assert.Equal(t, Candidate{server.URL, Node}, chosen)
}

func TestWhatAnswersLikeAnAPIServer(t *testing.T) {
	for status, there := range map[int]bool{200: true, 401: true, 403: true, 404: false, 418: false, 500: false, 503: false} {
		server, authority := answering(t, status)
		config := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
		_, err := Choose(t.Context(), config, []Candidate{{server.URL, Node}})
		assert.Equal(t, there, err == nil, "%d: %v", status, err)
	}
}

func TestAServerThatCannotProveItselfIsNotThere(t *testing.T) {
	server, _ := answering(t, http.StatusOK)
	another := httptest.NewUnstartedServer(nil)
	another.StartTLS()
	defer another.Close()
	_, err := Choose(t.Context(), &rest.Config{BearerToken: "secret"}, []Candidate{{server.URL, Environment}})
	require.Error(t, err, "its authority is not the service account's")
	assert.NotContains(t, err.Error(), "secret")
}
