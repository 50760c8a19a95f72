package agent

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

func TestC3TheAddressByTheIdentityIsTakenShownAndRemembered(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	gone := httptest.NewTLSServer(nil)
	gone.Close()
	data, mounted := t.TempDir(), t.TempDir()
	options := func(identity string) *Options {
		return &Options{
			REST:   &rest.Config{Host: gone.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}},
			config: Config{DataDir: data, Identity: filepath.Join(mounted, identity, "identity.yaml")},
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(mounted, "api-server"), []byte(server.URL+"\n"), 0o600))
	o := options("")
	before := o.REST
	require.NoError(t, o.reach(t.Context()))
	assert.Equal(t, server.URL, o.REST.Host)
	assert.Equal(t, gone.URL, before.Host, "whoever gave it keeps it as it was")
	assert.Equal(t, server.URL+" (identity)", o.config.reached)

	o = options("none")
	require.NoError(t, o.reach(t.Context()))
	assert.Equal(t, server.URL+" (remembered)", o.config.reached)
}

func TestWithoutAChoiceNobodyIsAsked(t *testing.T) {
	o := &Options{REST: &rest.Config{Host: "https://10.96.0.1:443"}, config: Config{DataDir: t.TempDir(), Identity: "/none/identity.yaml"}}
	require.NoError(t, o.reach(t.Context()))
	assert.Equal(t, "https://10.96.0.1:443", o.REST.Host)
	assert.Empty(t, o.config.reached)
}

func TestAHintOfOneLineIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", 1<<20)), 0o600))
	assert.Len(t, readLine(path), maxLine)
	assert.Empty(t, readLine(filepath.Dir(path)))
}
