package trust

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/fleetling/fleetling/sources"
)

func addFixtures(f *testing.F, pattern string, add func(name, text string)) {
	f.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		add(file, string(data))
	}
}

// Whatever the bytes are: a verdict of two reasons, or a commit whose payload
// and signature are exactly what was stored.
func FuzzParseCommit(f *testing.F) {
	f.Add([]byte(plain))
	addFixtures(f, "testdata/*/*.commit", func(_, text string) { f.Add([]byte(text)) })
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := ParseCommit(objectID(string(raw)), raw)
		if err != nil {
			switch sources.ReasonOf(err) {
			case sources.MalformedCommit, sources.NonCanonicalSignature, sources.LimitExceeded:
			default:
				t.Fatalf("no verdict: %v", err)
			}
			return
		}
		again := string(c.Payload)
		if c.claim != nil {
			again = withSignature(again, c.signature)
		}
		if again != string(raw) {
			t.Fatalf("read back as\n%q\nnot\n%q", again, raw)
		}
		if c.signature != "" && c.claim == nil {
			t.Fatal("a signature without a claim")
		}
	})
}

// Whatever the file holds: keys that have an id and a name, or a problem.
func FuzzReadSigners(f *testing.F) {
	addFixtures(f, "testdata/*/*.asc", func(_, text string) { f.Add(".asc", []byte(text)) })
	addFixtures(f, "testdata/*/*.pub", func(_, text string) { f.Add(".pub", []byte(text)) })
	addFixtures(f, "testdata/readsigners/*.txtar", func(_, text string) {
		for _, file := range txtar.Parse([]byte(text)).Files {
			f.Add(filepath.Ext(file.Name), file.Data)
		}
	})
	f.Fuzz(func(t *testing.T, ext string, data []byte) {
		if ext != ".asc" && ext != ".pub" {
			return
		}
		s, problems, err := ReadSigners(fstest.MapFS{"signers/alice" + ext: {Data: data}}, "signers")
		if err != nil {
			t.Fatal(err)
		}
		if len(s.byID) == 0 && len(problems) == 0 {
			t.Fatal("neither a key nor a problem")
		}
		for id, k := range s.byID {
			if k.Name != "alice" || !complete(id, k) {
				t.Fatalf("key %s: %+v", id, k)
			}
		}
	})
}

// complete says whether a key is there in one form, and under its id.
func complete(id string, k *key) bool {
	known := k.Fingerprint != "" && (id == k.id || id == keyID(k.id))
	return known && (k.ssh == nil) != (k.pgp == nil)
}

// Whatever signature stands under a commit: only the one that the key made
// verifies, but for the forms that are documented.
func FuzzVerify(f *testing.F) {
	texts := map[string]string{}
	keys := Signers{byID: map[string]*key{}}
	for _, name := range []string{"tools/gpg-2.4", "tools/sq-1.3-rfc4880", "tools/sq-1.3-rfc9580", "weak/pgp-sha1", "weak/ssh-rsa-sha1"} {
		c := parse(f, fixture(f, name+".commit"))
		texts[c.signature] = string(c.Payload)
		f.Add(string(c.Payload), c.signature)
		ext := ".asc"
		if strings.HasPrefix(name, "weak/ssh") {
			ext = ".pub"
		}
		keys = joined(f, keys, fixtureKey(f, name+ext))
	}
	alice := sshKey(f, "alice")
	c := parse(f, signed(f, payloadAt(noon), alice))
	texts[c.signature] = string(c.Payload)
	f.Add(string(c.Payload), c.signature)
	keys = joined(f, keys, signers(f, alice))

	p := Policy{Now: noon.Add(time.Hour)}
	f.Fuzz(func(t *testing.T, payload, signature string) {
		if !strings.Contains(payload, "\n\n") {
			return
		}
		raw := withSignature(payload, signature)
		c, err := ParseCommit(objectID(raw), []byte(raw))
		if err != nil {
			return
		}
		got, err := p.Verify(c, keys)
		if err != nil && sources.ReasonOf(err) == "" {
			t.Fatalf("no verdict: %v", err)
		}
		if err != nil {
			return
		}
		for _, original := range texts {
			if original == string(c.Payload) {
				return
			}
		}
		t.Fatalf("%v did not sign %q", got.Signer, c.Payload)
	})
}
