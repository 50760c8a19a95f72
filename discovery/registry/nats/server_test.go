package nats_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/registry/nats"
)

const (
	bucket = "clusterset"
	ready  = 30 * time.Second
)

// users are the seeds of the documented users.
type users struct {
	public map[string]string
	files  map[string]string
}

func newUsers(tb testing.TB) users {
	tb.Helper()
	u := users{public: map[string]string{}, files: map[string]string{}}
	dir := tb.TempDir()
	for _, name := range []string{"admin", "alice", "bob"} {
		pair, err := nkeys.CreateUser()
		require.NoError(tb, err)
		public, err := pair.PublicKey()
		require.NoError(tb, err)
		seed, err := pair.Seed()
		require.NoError(tb, err)
		u.public[name], u.files[name] = public, filepath.Join(dir, name+".nk")
		require.NoError(tb, os.WriteFile(u.files[name], seed, 0o600))
	}
	return u
}

// documented is the servers' configuration as doc.go has it.
func documented(tb testing.TB, u users) *server.Options {
	tb.Helper()
	text, err := os.ReadFile("doc.go")
	require.NoError(tb, err)
	var config strings.Builder
	for line := range strings.Lines(string(text)) {
		code, ok := strings.CutPrefix(line, "//\t")
		if ok && (config.Len() > 0 || strings.HasPrefix(code, "accounts {")) {
			config.WriteString(code)
		} else if config.Len() > 0 {
			break
		}
	}
	require.Contains(tb, config.String(), "NKEY_ALICE")
	filled := strings.NewReplacer("NKEY_ADMIN", u.public["admin"], "NKEY_ALICE", u.public["alice"], "NKEY_BOB", u.public["bob"]).Replace(config.String())
	path := filepath.Join(tb.TempDir(), "server.conf")
	require.NoError(tb, os.WriteFile(path, []byte(filled), 0o600))
	options, err := server.ProcessConfigFile(path)
	require.NoError(tb, err)
	return local(tb, options)
}

// local makes options for a server of this test.
func local(tb testing.TB, options *server.Options) *server.Options {
	tb.Helper()
	options.Host, options.Port = "127.0.0.1", server.RANDOM_PORT
	options.JetStream, options.StoreDir = true, tb.TempDir()
	options.NoSigs, options.NoLog = true, true
	return options
}

func start(tb testing.TB, options *server.Options) *server.Server {
	tb.Helper()
	s, err := server.NewServer(options)
	require.NoError(tb, err)
	s.Start()
	require.True(tb, s.ReadyForConnections(ready))
	tb.Cleanup(func() { stop(s) })
	return s
}

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

func settings() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{Bucket: bucket, History: 1, Replicas: 1, LimitMarkerTTL: time.Hour, MaxValueSize: 1 << 20}
}

// admin may do everything.
func admin(tb testing.TB, url string, options ...natsgo.Option) jetstream.JetStream {
	tb.Helper()
	conn, err := natsgo.Connect(url, options...)
	require.NoError(tb, err)
	tb.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(tb, err)
	return js
}

func makeBucket(tb testing.TB, js jetstream.JetStream, config jetstream.KeyValueConfig) {
	tb.Helper()
	require.Eventually(tb, func() bool {
		_, err := js.CreateKeyValue(tb.Context(), config)
		return err == nil
	}, ready, 50*time.Millisecond)
}

// open is a member of an open server.
func open(tb testing.TB, member string, urls ...string) *nats.Carrier {
	tb.Helper()
	return openWith(tb, nats.Options{URLs: urls, Bucket: bucket, Member: member, Timeout: ready})
}

func openWith(tb testing.TB, options nats.Options) *nats.Carrier {
	tb.Helper()
	c, err := nats.Open(options)
	require.NoError(tb, err)
	tb.Cleanup(c.Close)
	return c
}

// single is one open server with a bucket.
func single(tb testing.TB) (*server.Server, jetstream.JetStream) {
	tb.Helper()
	s := start(tb, local(tb, &server.Options{}))
	js := admin(tb, s.ClientURL())
	makeBucket(tb, js, settings())
	return s, js
}

func record(text string) discovery.Own { return discovery.Own{Record: []byte(text)} }

func head(member, record string) discovery.Head {
	return discovery.Head{Member: member, Record: discovery.DigestOf([]byte(record))}
}
