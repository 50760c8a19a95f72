package trust

import (
	"bytes"
	"crypto"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/fleetling/fleetling/sources"
)

var update = flag.Bool("update", false, "rewrite want in testdata")

func TestReadSigners(t *testing.T) {
	cases, err := filepath.Glob("testdata/readsigners/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			files, want := fstest.MapFS{}, &archive.Files[len(archive.Files)-1]
			for _, f := range archive.Files[:len(archive.Files)-1] {
				files["signers/"+f.Name] = &fstest.MapFile{Data: f.Data}
			}
			got := describe(ReadSigners(files, "signers"))
			if *update {
				want.Data = []byte(got)
				require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o644))
			}
			if diff := cmp.Diff(string(want.Data), got); diff != "" {
				t.Errorf("%s(-want +got):\n%s", archive.Comment, diff)
			}
		})
	}
}

// describe writes a set of signers, one key a line, and the problems.
func describe(s Signers, problems []*sources.Error, err error) string {
	if err != nil {
		return fmt.Sprintf("error: %v\n", err)
	}
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(s.byID)) {
		k := s.byID[id]
		line := fmt.Sprintf("%s %s", k.Name, id)
		if id != k.Fingerprint {
			line += " of " + k.Fingerprint
		}
		if !k.from.IsZero() || !k.until.IsZero() {
			line += " from " + stamp(k.from) + " to " + stamp(k.until)
		}
		if k.revoked {
			line += " revoked"
		}
		if k.weak != "" {
			line += " weak: " + k.weak
		}
		lines = append(lines, line+"\n")
	}
	for _, p := range problems {
		lines = append(lines, fmt.Sprintf("problem %s: %v\n", p.Reason, p))
	}
	return strings.Join(append(lines, fmt.Sprintf("empty: %v\n", s.Empty())), "")
}

// The configuration's folder is a mounted ConfigMap: links into a folder whose
// name begins with two dots.
func TestReadSignersReadsAMountedConfigMap(t *testing.T) {
	dir, alice := t.TempDir(), sshKey(t, "alice")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "..2024"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "..2024", "alice.pub"), []byte(alice.Public()), 0o644))
	require.NoError(t, os.Symlink("..2024", filepath.Join(dir, "..data")))
	require.NoError(t, os.Symlink("..data/alice.pub", filepath.Join(dir, "alice.pub")))
	require.NoError(t, os.Symlink("..data/gone.pub", filepath.Join(dir, "gone.pub")))

	s, problems, err := ReadSigners(os.DirFS(dir), ".")
	require.NoError(t, err)
	assert.False(t, s.Empty())
	require.Len(t, problems, 1)
	assert.Equal(t, "gone.pub", problems[0].File)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.pub"), 0o755))
	_, problems, err = ReadSigners(os.DirFS(dir), ".")
	require.NoError(t, err)
	assert.Len(t, problems, 2)
}

func TestNoFolderIsNoKeysAndNoProblem(t *testing.T) {
	s, problems, err := ReadSigners(fstest.MapFS{"fleetling.yaml": {}}, "signers")
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.True(t, s.Empty())
	assert.True(t, Signers{}.Empty())
}

func TestAFileInPlaceOfTheFolderIsAProblem(t *testing.T) {
	s, problems, err := ReadSigners(fstest.MapFS{"signers": {}}, "signers")
	require.NoError(t, err)
	require.Len(t, problems, 1)
	assert.Equal(t, "signers", problems[0].File)
	assert.True(t, s.Empty())
}

// A key that can't be read just now is not a key that is not there: a verdict
// would be UnknownKey for no fault of the commit.
func TestAFailureToReadIsAnErrorAndNotAnEmptySet(t *testing.T) {
	alice := sshKey(t, "alice")
	whole := fstest.MapFS{"signers/alice.pub": {Data: []byte(alice.Public())}}
	for name, path := range map[string]string{"the folder": "signers", "a file": "signers/alice.pub"} {
		t.Run(name, func(t *testing.T) {
			_, _, err := ReadSigners(failing{whole, path}, "signers")
			require.ErrorIs(t, err, errDisk)
			assert.Empty(t, sources.ReasonOf(err))
		})
	}
	t.Run("but a folder that the tree makes impossible to list is a problem", func(t *testing.T) {
		odd := &fs.PathError{Op: "readdir", Path: "signers", Err: fs.ErrInvalid}
		s, problems, err := ReadSigners(refusing{whole, "signers", odd}, "signers")
		require.NoError(t, err)
		assert.True(t, s.Empty())
		assert.Len(t, problems, 1)
	})
	t.Run("but what the tree itself holds there is a problem", func(t *testing.T) {
		wrong := &sources.Error{Reason: sources.PathNotFound, Err: errors.New("a submodule")}
		_, problems, err := ReadSigners(refusing{whole, "signers/alice.pub", wrong}, "signers")
		require.NoError(t, err)
		assert.Len(t, problems, 1)
	})
}

var errDisk = errors.New("disk")

// failing is a file system of which one file can't be opened.
type failing struct {
	fs.FS
	path string
}

func (f failing) Open(name string) (fs.File, error) {
	return refusing{f.FS, f.path, errDisk}.Open(name)
}

type refusing struct {
	fs.FS
	path string
	err  error
}

func (f refusing) Open(name string) (fs.File, error) {
	if name == f.path {
		return nil, f.err
	}
	return f.FS.Open(name)
}

func TestReadSignersIsBounded(t *testing.T) {
	alice := sshKey(t, "alice")
	files := fstest.MapFS{}
	files["signers/.hidden"] = &fstest.MapFile{}
	for i := range maxKeyFiles {
		files[fmt.Sprintf("signers/k%d.pub", i)] = &fstest.MapFile{Data: []byte(alice.Public())}
	}
	_, _, err := ReadSigners(files, "signers")
	require.NoError(t, err)

	files["signers/one-more.pub"] = &fstest.MapFile{}
	_, _, err = ReadSigners(files, "signers")
	assert.Equal(t, sources.LimitExceeded, sources.ReasonOf(err))

	big := fstest.MapFS{
		"signers/fits.pub": {Data: []byte(alice.Public() + strings.Repeat("\n", maxKeyFile-len(alice.Public())))},
		"signers/not.pub":  {Data: []byte(alice.Public() + strings.Repeat("\n", maxKeyFile))},
	}
	s, problems, err := ReadSigners(big, "signers")
	require.NoError(t, err)
	assert.False(t, s.Empty())
	require.Len(t, problems, 1)
	assert.Equal(t, "signers/not.pub", problems[0].File)
}

func TestSecretKeysAreRefusedUnderAnyLabel(t *testing.T) {
	entity, _ := goPGPKey(t, &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	text := armored(t, openpgp.PublicKeyType, func(b *bytes.Buffer) error { return entity.SerializePrivateWithoutSigning(b, nil) })
	_, err := parsePGPKey(text)
	assert.ErrorContains(t, err, "private key")
	assert.NotContains(t, err.Error(), strings.Split(text, "\n")[2])
}

// What ReadEntity passes over in silence would change what a key says.
func TestPacketsThatDoNotBelongIntoAKeyAreRefused(t *testing.T) {
	entity, _ := goPGPKey(t, &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	whole := func(before, after []byte) string {
		return armored(t, openpgp.PublicKeyType, func(b *bytes.Buffer) error {
			b.Write(before)
			err := entity.Serialize(b)
			b.Write(after)
			return err
		})
	}
	revocation := []byte{0xc2, 10, 4, byte(packet.SigTypeKeyRevocation), 1, 99, 0, 0, 0, 0, 0, 0}
	for name, text := range map[string]string{
		"a marker before it":                whole([]byte{0xca, 3, 'P', 'G', 'P'}, nil),
		"a literal after it":                whole(nil, []byte{0xcb, 6, 'b', 0, 0, 0, 0, 0}),
		"a revocation of an unknown digest": whole(nil, revocation),
		"a cut packet after it":             whole(nil, []byte{0xcd, 9, 'x'}),
		"no packet at all":                  whole(nil, []byte{1}),
		"a user id before it":               whole([]byte{0xcd, 1, 'x'}, nil),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parsePGPKey(text)
			assert.Error(t, err)
		})
	}
	_, err := parsePGPKey(whole(nil, nil))
	assert.NoError(t, err)
}

// Without the right to sign a subkey is for other uses; without a back signature
// anybody could have taken it from another key; with a weak one as well.
func TestASubkeySignsByItsFlagAndItsBackSignature(t *testing.T) {
	// The library's salt knows no SHA-1.
	config := &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, NonDeterministicSignaturesViaNotation: new(bool)}
	entity, _ := goPGPKey(t, config)
	require.NoError(t, entity.AddSigningSubkey(config))
	sub := &entity.Subkeys[len(entity.Subkeys)-1]
	id := hexUpper(sub.PublicKey.Fingerprint)
	public := func() string {
		return armored(t, openpgp.PublicKeyType, func(b *bytes.Buffer) error { return entity.Serialize(b) })
	}
	s, _ := parseKeyFiles("", []keyFile{{"forge.asc", public()}})
	require.NotNil(t, s.find(id))

	binding := sub.Bindings[0].Packet
	read := func() *key {
		require.NoError(t, binding.SignKey(sub.PublicKey, entity.PrivateKey, config))
		s, _ := parseKeyFiles("", []keyFile{{"forge.asc", public()}})
		require.NotNil(t, s.find(hexUpper(entity.PrimaryKey.Fingerprint)))
		return s.find(id)
	}
	require.Empty(t, read().weak)

	binding.EmbeddedSignature.Hash = crypto.SHA1
	require.NoError(t, binding.EmbeddedSignature.CrossSignKey(sub.PublicKey, entity.PrimaryKey, sub.PrivateKey, config))
	assert.Contains(t, read().weak, "SHA-1")

	binding.FlagSign, binding.FlagAuthenticate = false, true
	assert.Nil(t, read())

	binding.FlagSign, binding.EmbeddedSignature = true, nil
	assert.Nil(t, read())
}

// A key is prolonged by a newer self-signature, on whichever of its user ids;
// of two made in the same second the shorter life counts, whatever their order.
func TestTheNewestSelfSignatureSaysHowLongAKeyLives(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for name, test := range map[string]struct {
		made  [2]time.Time
		lives [2]time.Duration
		want  time.Duration
	}{
		"prolonged":          {[2]time.Time{noon, noon.Add(time.Hour)}, [2]time.Duration{year, 5 * year}, 5 * year},
		"prolonged for ever": {[2]time.Time{noon, noon.Add(time.Hour)}, [2]time.Duration{year, 0}, 0},
		"shortened":          {[2]time.Time{noon, noon.Add(time.Hour)}, [2]time.Duration{5 * year, year}, year},
		"in the same second": {[2]time.Time{noon, noon}, [2]time.Duration{5 * year, year}, year},
		"and for ever":       {[2]time.Time{noon, noon}, [2]time.Duration{0, year}, year},
	} {
		for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
			config := func(i int) *packet.Config {
				return &packet.Config{
					Algorithm: packet.PubKeyAlgoEdDSA, KeyLifetimeSecs: uint32(test.lives[i] / time.Second),
					Time: func() time.Time { return test.made[i] },
				}
			}
			entity, err := openpgp.NewEntity(names[0], "", "", config(0))
			require.NoError(t, err)
			require.NoError(t, entity.AddUserId(names[1], "", "", config(1)))
			text := armored(t, openpgp.PublicKeyType, func(b *bytes.Buffer) error { return entity.Serialize(b) })
			keys, err := parsePGPKey(text)
			require.NoError(t, err)
			want := noon.Add(test.want)
			if test.want == 0 {
				want = time.Time{}
			}
			assert.True(t, want.Equal(keys[0].until), "%s: want %v, got %v", name, want, keys[0].until)
		}
	}
}

func TestParseFingerprint(t *testing.T) {
	ssh := signers(t, sshKey(t, "alice"))
	for id := range ssh.byID {
		got, err := ParseFingerprint(id)
		require.NoError(t, err)
		assert.Equal(t, id, got)
	}
	const pgp = "F57E79F55399033A5A2B173FA88178C6D1126767"
	for _, text := range []string{pgp, strings.ToLower(pgp), "F57E 79F5 5399 033A 5A2B  173F A881 78C6 D112 6767"} {
		got, err := ParseFingerprint(text)
		require.NoError(t, err)
		assert.Equal(t, pgp, got)
	}
	for _, text := range []string{"", "alice", pgp[:16], pgp + "00", "SHA256:", "SHA256:abc", "MD5:00", "0x" + pgp, "SHA256:" + strings.Repeat("A", 43) + "="} {
		_, err := ParseFingerprint(text)
		assert.Error(t, err, "%q", text)
	}
}

func TestALibraryThatPanicsIsARefusal(t *testing.T) {
	err := guard(func() error { panic("index out of range") })
	assert.ErrorContains(t, err, "panic")
	assert.NoError(t, guard(func() error { return nil }))
	assert.ErrorIs(t, guard(func() error { return errDisk }), errDisk)
}
