package nats_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/discovery/registry/nats"
)

const canary = "s3cret-canary"

func TestOptionsAreChecked(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*nats.Options)
		words  string
	}{
		"as they should be":          {func(*nats.Options) {}, ""},
		"several servers":            {func(o *nats.Options) { o.URLs = []string{"tls://a:4222", "nats://b"} }, ""},
		"a password over tls":        {func(o *nats.Options) { o.User, o.Password = "u", canary }, ""},
		"no server":                  {func(o *nats.Options) { o.URLs = nil }, "no server"},
		"a bucket with a wildcard":   {func(o *nats.Options) { o.Bucket = "*" }, "bucket"},
		"a bucket of two tokens":     {func(o *nats.Options) { o.Bucket = "a.b" }, "bucket"},
		"a member with a wildcard":   {func(o *nats.Options) { o.Member = ">" }, "member"},
		"a long member":              {func(o *nats.Options) { o.Member = strings.Repeat("a", 33) }, "32 characters"},
		"no timeout":                 {func(o *nats.Options) { o.Timeout = 0 }, "timeout"},
		"another scheme":             {func(o *nats.Options) { o.URLs = []string{"https://" + canary} }, "server 1"},
		"a password in the URL":      {func(o *nats.Options) { o.URLs = []string{"tls://a:4222", "tls://u:" + canary + "@h:4222"} }, "server 2"},
		"what is no URL":             {func(o *nats.Options) { o.URLs = []string{"tls://%zz" + canary} }, "server 1"},
		"a password over plain nats": {func(o *nats.Options) { o.URLs, o.User, o.Password = []string{"nats://h"}, "u", canary }, "only sent over tls"},
		"a user without password":    {func(o *nats.Options) { o.User = "u" }, "password"},
		"two kinds of credentials":   {func(o *nats.Options) { o.CredsFile, o.NKeyFile = "a", "b" }, "one of them"},
		"a certificate without key":  {func(o *nats.Options) { o.CertFile = "a" }, "key"},
	} {
		t.Run(name, func(t *testing.T) {
			o := nats.Options{URLs: []string{"tls://h:4222"}, Bucket: "b", Member: "m", Timeout: time.Second}
			test.change(&o)
			err := o.Validate()
			if test.words == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, test.words)
			assert.NotContains(t, err.Error(), canary)
			_, openErr := nats.Open(o)
			assert.Equal(t, err, openErr)
		})
	}
}

func TestOpenNamesAFileThatItCanNotUse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "user.nk")
	require.NoError(t, os.WriteFile(file, []byte(canary), 0o600))
	o := nats.Options{URLs: []string{"tls://h:4222"}, Bucket: "b", Member: "m", Timeout: time.Second}
	for name, change := range map[string]func(){
		"an nkey":      func() { o.NKeyFile = file },
		"an authority": func() { o.NKeyFile, o.CAFile = "", file },
	} {
		t.Run(name, func(t *testing.T) {
			change()
			_, err := nats.Open(o)
			assert.ErrorContains(t, err, file)
			assert.NotContains(t, err.Error(), canary)
		})
	}
}

// certificate makes one for 127.0.0.1 that vouches for itself, and its file.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

func TestAPasswordOverTLS(t *testing.T) {
	pair, file := certificate(t)
	options := local(t, &server.Options{Username: "u", Password: "p"})
	options.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	s := start(t, options)
	url := strings.Replace(s.ClientURL(), "nats://", "tls://", 1)
	makeBucket(t, admin(t, url, natsgo.UserInfo("u", "p"), natsgo.RootCAs(file)), settings())
	good := nats.Options{URLs: []string{url}, Bucket: bucket, Member: "alice", Timeout: ready, User: "u", Password: "p", CAFile: file}
	require.NoError(t, openWith(t, good).Put(t.Context(), record("r")))

	for name, test := range map[string]struct {
		change func(*nats.Options)
		words  string
	}{
		"a wrong password":            {func(o *nats.Options) { o.Password = canary }, "uthorization"},
		"an authority we do not know": {func(o *nats.Options) { o.CAFile = "" }, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := good
			bad.Timeout = 500 * time.Millisecond
			test.change(&bad)
			heads, err := openWith(t, bad).Heads(t.Context())
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.ErrorContains(t, err, test.words)
			assert.Nil(t, heads)
			assert.NotContains(t, err.Error(), canary)
		})
	}
}

// TestACredentialsFile has the permissions in the user's claims, as nsc makes them.
func TestACredentialsFile(t *testing.T) {
	operator, account := pairOf(t, nkeys.CreateOperator), pairOf(t, nkeys.CreateAccount)
	system := pairOf(t, nkeys.CreateAccount)
	systemJWT, err := jwt.NewAccountClaims(public(t, system)).Encode(operator)
	require.NoError(t, err)
	claims := jwt.NewAccountClaims(public(t, account))
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	accountJWT, err := claims.Encode(operator)
	require.NoError(t, err)
	resolver := &server.MemAccResolver{}
	require.NoError(t, resolver.Store(public(t, account), accountJWT))
	require.NoError(t, resolver.Store(public(t, system), systemJWT))
	s := start(t, local(t, &server.Options{TrustedKeys: []string{public(t, operator)}, AccountResolver: resolver, SystemAccount: public(t, system)}))
	makeBucket(t, admin(t, s.ClientURL(), natsgo.UserCredentials(creds(t, account))), settings())
	allowed := []string{
		"$KV.clusterset.alice.>", "$JS.API.STREAM.INFO.KV_clusterset", "$JS.API.CONSUMER.CREATE.KV_clusterset.>",
		"$JS.API.CONSUMER.MSG.NEXT.KV_clusterset.>", "$JS.API.CONSUMER.DELETE.KV_clusterset.>", "$JS.API.DIRECT.GET.KV_clusterset.>",
	}
	o := nats.Options{URLs: []string{s.ClientURL()}, Bucket: bucket, Member: "alice", Timeout: ready, CredsFile: creds(t, account, allowed...)}
	alice := openWith(t, o)
	require.NoError(t, alice.Put(t.Context(), record("r")))
	data, err := alice.Get(t.Context(), "alice", head("alice", "r").Record)
	require.NoError(t, err)
	assert.Equal(t, "r", string(data))
	o.CredsFile = creds(t, account, append(allowed[1:], "$KV.clusterset.bob.>")...)
	assert.ErrorIs(t, openWith(t, o).Put(t.Context(), record("r2")), nats.ErrDenied)
}

func pairOf(t *testing.T, make func() (nkeys.KeyPair, error)) nkeys.KeyPair {
	t.Helper()
	pair, err := make()
	require.NoError(t, err)
	return pair
}

func public(t *testing.T, pair nkeys.KeyPair) string {
	t.Helper()
	key, err := pair.PublicKey()
	require.NoError(t, err)
	return key
}

// creds makes the file of a user who may publish to some subjects, or to all.
func creds(t *testing.T, account nkeys.KeyPair, subjects ...string) string {
	t.Helper()
	user := pairOf(t, nkeys.CreateUser)
	claims := jwt.NewUserClaims(public(t, user))
	if len(subjects) > 0 {
		claims.Pub.Allow.Add(subjects...)
		claims.Sub.Allow.Add("_INBOX.alice.>")
	}
	token, err := claims.Encode(account)
	require.NoError(t, err)
	seed, err := user.Seed()
	require.NoError(t, err)
	text, err := jwt.FormatUserConfig(token, seed)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "user.creds")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}
