package trust

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/gittest"
)

// sample is one signed commit, the key it is judged by, and two verdicts.
type sample struct {
	commit string
	// file and key are the key as a file in signers/.
	file, key string
	// now is the time of the verdict; zero is a minute after noon.
	now     time.Time
	revoked []string
	// git says whether git verify-commit takes it, ours is our reason.
	git  bool
	ours sources.Reason
	// why says why the two differ. Empty: they don't.
	why string
}

// The verdict of git verify-commit (with gpg 2.2 and ssh-keygen 9.2) beside
// ours. We are as strict or stricter, with two exceptions, both named "looser":
// a key that has expired since, and a kind of key that gpg 2.2 can't read.
func TestOurVerdictBesideThatOfGit(t *testing.T) {
	good, bad := 0, 0
	all := samples(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		t.Run(name, func(t *testing.T) {
			if s.now.IsZero() {
				s.now = noon.Add(time.Minute)
			}
			git, said := gitVerdict(t, s)
			_, err := verdict(s)
			ours := sources.ReasonOf(err)
			t.Logf("git %-5v ours %-22s %s", git, ours, s.why)
			assert.Equal(t, s.git, git, "git: %s", said)
			assert.Equal(t, s.ours, ours, "ours: %v", err)
			differ := git != (ours == "")
			assert.Equal(t, differ, s.why != "", "where the verdicts differ the table says why, and only there")
			assert.Equal(t, differ && ours == "", strings.HasPrefix(s.why, "looser"))
		})
		if s.ours == "" {
			good++
		} else {
			bad++
		}
	}
	assert.Greater(t, good, 10)
	assert.Greater(t, bad, 20)
}

func verdict(s sample) (Signature, error) {
	c, err := ParseCommit(objectID(s.commit), []byte(s.commit))
	if err != nil {
		return Signature{}, err
	}
	keys, _ := parseKeyFiles("signers", []keyFile{{s.file, s.key}})
	return Policy{Now: s.now, Revoked: s.revoked}.Verify(c, keys)
}

// gitVerdict runs git verify-commit with the same key and clock.
func gitVerdict(t *testing.T, s sample) (good bool, said string) {
	t.Helper()
	r := gittest.NewRepo(t)
	id := r.GitInput(s.commit, "hash-object", "-t", "commit", "-w", "--stdin", "--literally")
	require.Equal(t, objectID(s.commit), id)
	args := []string{"-C", r.Dir}
	if strings.HasSuffix(s.file, ".pub") {
		args = append(args, "-c", "gpg.ssh.allowedSignersFile="+allowedSigners(t, s))
	} else {
		args = append(args, "-c", "gpg.program="+gpgWith(t, s))
	}
	out, err := exec.CommandContext(t.Context(), "git", append(args, "verify-commit", "--raw", id)...).CombinedOutput()
	return err == nil, string(out)
}

func allowedSigners(t *testing.T, s sample) string {
	t.Helper()
	line := s.key
	if isKeyType(strings.Fields(line)[0]) {
		line = "alice@example.com " + line
	}
	path := filepath.Join(t.TempDir(), "allowed_signers")
	require.NoError(t, os.WriteFile(path, []byte(line), 0o644))
	return path
}

func gpgWith(t *testing.T, s sample) string {
	t.Helper()
	home, err := os.MkdirTemp("", "gpg") //nolint:usetesting // the path of gpg's sockets is bounded: a short folder
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	gpg := "exec gpg --homedir " + home + " --batch --no-autostart " + strings.Join(faked(s.now), " ") + ` "$@"`
	program := filepath.Join(home, "gpg.sh")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"+gpg+"\n"), 0o755))
	cmd := exec.CommandContext(t.Context(), program, "--quiet", "--import")
	cmd.Stdin = strings.NewReader(s.key)
	// A key that gpg can't import is part of git's verdict.
	_ = cmd.Run()
	return program
}

func samples(t *testing.T) map[string]sample {
	t.Helper()
	all := map[string]sample{}
	for _, part := range []map[string]sample{sshSamples(t), pgpSamples(t), toolSamples(t), weakSamples(t), twinSamples(t)} {
		maps.Copy(all, part)
	}
	return all
}

func sshSamples(t *testing.T) map[string]sample {
	t.Helper()
	payload := payloadAt(noon)
	alice, touch := sshKey(t, "alice"), newSecurityKey(t)
	by := func(kind string, args ...string) sample {
		k := gittest.NewSSHKey(t, "alice", kind, args...)
		return sample{commit: signed(t, payload, k), file: "alice.pub", key: k.Line, git: true}
	}
	with := func(options string, git bool, ours sources.Reason) sample {
		return sample{commit: signed(t, payload, alice), file: "alice.pub", key: "a@example.com " + options + " " + alice.Line, git: git, ours: ours}
	}
	changed := strings.Replace(signed(t, payload, alice), "message", "massage", 1)
	file := signed(t, payload, alice, "-n", "file")
	return map[string]sample{
		"ssh: ed25519":             by("ed25519"),
		"ssh: ecdsa 256":           by("ecdsa"),
		"ssh: ecdsa 384":           by("ecdsa", "-b", "384"),
		"ssh: ecdsa 521":           by("ecdsa", "-b", "521"),
		"ssh: rsa 2048":            by("rsa", "-b", "2048"),
		"ssh: security key":        {commit: touch.sign(payload, 1), file: "alice.pub", key: touch.line, git: true},
		"ssh: digest SHA-256":      {commit: signed(t, payload, alice, "-O", "hashalg=sha256"), file: "alice.pub", key: alice.Line, git: true},
		"ssh: unsigned":            {commit: payload, file: "alice.pub", key: alice.Line, ours: sources.Unsigned},
		"ssh: changed afterwards":  {commit: changed, file: "alice.pub", key: alice.Line, ours: sources.BadSignature},
		"ssh: another key":         {commit: signed(t, payload, alice), file: "alice.pub", key: sshKey(t, "alice").Line, ours: sources.UnknownKey},
		"ssh: another namespace":   {commit: file, file: "alice.pub", key: alice.Line, ours: sources.BadSignature},
		"ssh: within its validity": with(`valid-after="20240101Z",valid-before="20250101Z"`, true, ""),
		"ssh: before its validity": with(`valid-after="20250101Z"`, false, sources.ExpiredKey),
		"ssh: after its validity":  with(`valid-before="20240101Z"`, false, sources.ExpiredKey),
		"ssh: key for other uses":  with(`namespaces="file"`, false, sources.UnknownKey),
		"ssh: revoked by the configuration": {
			commit: signed(t, payload, alice), file: "alice.pub", key: alice.Line, git: true,
			revoked: []string{only(signers(t, alice)).Fingerprint}, ours: sources.RevokedKey, why: "git has another list for it",
		},
		"ssh: security key not touched": {
			commit: touch.sign(payload, 0), file: "alice.pub", key: touch.line, git: true,
			ours: sources.BadSignature, why: "a touch is what a security key is for",
		},
		"ssh: key valid again by a later verdict": {
			commit: signed(t, payload, alice), file: "alice.pub", key: "a@example.com " + `valid-before="20240701Z" ` + alice.Line,
			now: noon.AddDate(1, 0, 0), git: true,
		},
		"ssh: from the future": {
			commit: signed(t, payload, alice), file: "alice.pub", key: alice.Line, now: noon.Add(-time.Hour),
			git: true, ours: sources.ClockSkew, why: "git compares with no clock",
		},
	}
}

// only gives the signer of a set of one key.
func only(s Signers) Signer {
	for _, k := range s.byID {
		return k.Signer
	}
	return Signer{}
}

func pgpSamples(t *testing.T) map[string]sample {
	t.Helper()
	r := newRepo(t)
	ed := pgpKeyAt(t, "alice", "ed25519", "1y", noon)
	rsa := pgpKeyAt(t, "alice", "rsa2048", "0", noon)
	nist := pgpKeyAt(t, "alice", "nistp256", "0", noon)
	by := func(k *gittest.PGPKey, at time.Time, args ...string) sample {
		commit := raw(t, r, commitAt(t, r, "message", k, at, args...))
		return sample{commit: commit, file: k.File(), key: k.Public(), git: true, now: at.Add(time.Minute)}
	}
	change := func(s sample, f func(*sample)) sample { f(&s); return s }
	ours := func(reason sources.Reason, why string) func(*sample) {
		return func(s *sample) { s.ours, s.git, s.why = reason, why != "", why }
	}
	all := map[string]sample{
		"pgp: ed25519":        by(ed, noon),
		"pgp: rsa 2048":       by(rsa, noon),
		"pgp: ecdsa 256":      by(nist, noon),
		"pgp: digest SHA-384": by(rsa, noon, "--digest-algo", "SHA384"),
		"pgp: changed afterwards": change(by(ed, noon), func(s *sample) {
			s.commit, s.git, s.ours = strings.Replace(s.commit, "\n\nmessage", "\n\nmassage", 1), false, sources.BadSignature
		}),
		"pgp: another key of the same name": change(by(ed, noon), func(s *sample) {
			s.key, s.git, s.ours = pgpKeyAt(t, "alice", "ed25519", "1y", noon).Public(), false, sources.UnknownKey
		}),
		"pgp: key expired since": change(by(ed, noon), func(s *sample) {
			s.now, s.git, s.why = noon.AddDate(2, 0, 0), false, "looser: it was signed while the key was valid"
		}),
		"pgp: key expired when it signed": change(by(ed, noon), func(s *sample) {
			s.commit = raw(t, r, signedLate(t, r, ed))
			s.now, s.git, s.ours = noon.AddDate(2, 0, 0), false, sources.ExpiredKey
		}),
		"pgp: signed before the key was made": change(by(ed, noon), func(s *sample) {
			s.commit = raw(t, r, commitAt(t, r, "message", ed, noon.Add(-time.Hour), "--ignore-time-conflict", "--ignore-valid-from"))
			s.git, s.ours = false, sources.ExpiredKey
		}),
		"pgp: from the future":      change(by(ed, noon.Add(time.Hour)), func(s *sample) { s.now, s.ours, s.why = noon, sources.ClockSkew, "gpg takes it" }),
		"pgp: with an expiry":       change(by(ed, noon, "--default-sig-expire", "1y"), ours(sources.NonCanonicalSignature, "it would turn bad while it is deployed")),
		"pgp: critical notation":    change(by(ed, noon, "--set-notation", "!x@example.com=y"), func(s *sample) { s.git, s.ours = false, sources.NonCanonicalSignature }),
		"pgp: a notation":           by(ed, noon, "--set-notation", "x@example.com=y"),
		"pgp: digest SHA-224":       change(by(rsa, noon, "--digest-algo", "SHA224"), ours(sources.WeakAlgorithm, "SHA-256 or better")),
		"pgp: digest RIPEMD-160":    change(by(rsa, noon, "--digest-algo", "RIPEMD160"), ours(sources.WeakAlgorithm, "SHA-256 or better")),
		"pgp: committer date apart": change(by(ed, noon), func(s *sample) { s.commit = raw(t, r, signedApart(t, r, ed)) }),
	}
	addLifeOfKeys(t, r, all)
	return all
}

// signedLate signs with a key that has expired. gpg must believe that it has
// not, and only the second look of the clock is late.
func signedLate(t *testing.T, r *gittest.Repo, k *gittest.PGPKey) string {
	t.Helper()
	late := noon.AddDate(1, 6, 0)
	k.GPG(t, "", append(faked(late), "--passphrase", "", "--quick-set-expire", k.Fingerprint, "10y")...)
	return commitAt(t, r, "message", k, late)
}

// signedApart signs at noon a commit whose committer's date is years before.
func signedApart(t *testing.T, r *gittest.Repo, k *gittest.PGPKey) string {
	t.Helper()
	commitAt(t, r, "message", k, noon)
	r.Time = noon.AddDate(-3, 0, 0)
	r.Git("-c", "gpg.program="+filepath.Join(k.Home, "faked.sh"), "-c", "user.signingKey="+k.Fingerprint, "commit", "--quiet", "--allow-empty", "--amend", "--no-edit", "--reset-author", "--gpg-sign")
	return r.Head()
}

// addLifeOfKeys adds subkeys, prolonging and revocation.
func addLifeOfKeys(t *testing.T, r *gittest.Repo, all map[string]sample) {
	t.Helper()
	add := func(name string, k *gittest.PGPKey, commit string, now time.Time, git bool, ours sources.Reason) {
		all[name] = sample{commit: commit, file: k.File(), key: k.Public(), now: now, git: git, ours: ours}
	}
	k := pgpKeyAt(t, "carol", "ed25519", "1y", noon)
	k.GPG(t, "", append(faked(noon), "--passphrase", "", "--quick-add-key", k.Fingerprint, "ed25519", "sign", "6m")...)
	sub := &gittest.PGPKey{Name: "carol", Home: k.Home, Fingerprint: fingerprints(t, k)[1]}
	bySub := raw(t, r, commitAt(t, r, "message", sub, noon))
	byPrimary := raw(t, r, commitAt(t, r, "message", k, noon))
	add("pgp: signing subkey", k, bySub, noon.Add(time.Minute), true, "")

	k.GPG(t, "", append(faked(noon.AddDate(0, 1, 0)), "--passphrase", "", "--quick-set-expire", k.Fingerprint, "5y")...)
	add("pgp: prolonged after it signed", k, byPrimary, noon.AddDate(2, 0, 0), true, "")

	k.GPG(t, "key 1\nrevkey\ny\n0\n\ny\nsave\n", append(faked(noon.AddDate(0, 2, 0)), "--no-batch", "--no-tty", "--passphrase", "", "--command-fd", "0", "--edit-key", k.Fingerprint)...)
	add("pgp: F9: revoked subkey", k, bySub, noon.AddDate(0, 3, 0), false, sources.RevokedKey)
	add("pgp: primary key of a revoked subkey", k, byPrimary, noon.AddDate(0, 3, 0), true, "")

	all["pgp: revoked after it signed"] = sample{
		commit: byPrimary, file: k.File(), key: revokedCopy(t, k), now: noon.AddDate(0, 3, 0), ours: sources.RevokedKey,
	}
}

// toolSamples are real ones of gpg 2.4, Sequoia's gpg and sq, and what GitHub's
// and GitLab's web interfaces write, with other keys than theirs.
func toolSamples(t *testing.T) map[string]sample {
	t.Helper()
	all := map[string]sample{}
	for _, name := range []string{"gpg-2.4", "gpg-sq-0.13", "sq-1.3-rfc4880"} {
		all["tool: "+name] = sample{commit: fixture(t, "tools/"+name+".commit"), file: "a.asc", key: fixture(t, "tools/"+name+".asc"), git: true}
	}
	const v6 = "sq-1.3-rfc9580"
	all["tool: "+v6] = sample{
		commit: fixture(t, "tools/"+v6+".commit"), file: "a.asc", key: fixture(t, "tools/"+v6+".asc"),
		why: "looser: gpg 2.2 can't read version 6",
	}
	entity, public := goPGPKey(t, &packet.Config{RSABits: 2048})
	all["tool: like GitHub"] = sample{commit: likeGitHub(t, payloadAt(noon), entity), file: "forge.asc", key: public, git: true}
	k := sshKey(t, "gitlab")
	all["tool: like GitLab"] = sample{commit: likeGitLab(t, payloadAt(noon), privateKey(t, k)), file: "gitlab.pub", key: k.Line, git: true}
	return all
}

// weakSamples are the committed ones (G4).
func weakSamples(t *testing.T) map[string]sample {
	t.Helper()
	all := map[string]sample{}
	add := func(name, ext string, git bool, ours sources.Reason, why string) {
		all["weak: "+name] = sample{commit: fixture(t, "weak/"+name+".commit"), file: "weak" + ext, key: fixture(t, "weak/"+name+ext), git: git, ours: ours, why: why}
	}
	add("pgp-sha1", ".asc", true, sources.WeakAlgorithm, "G4: SHA-1 digest")
	add("pgp-rsa1024", ".asc", true, sources.WeakAlgorithm, "G4: RSA of 1024 bits")
	add("pgp-dsa2048", ".asc", true, sources.WeakAlgorithm, "G4: DSA")
	add("pgp-self-sha1", ".asc", true, sources.WeakAlgorithm, "G4: SHA-1 self-signature")
	add("pgp-secp256k1", ".asc", true, sources.WeakAlgorithm, "a curve beyond NIST's and Ed25519")
	add("pgp-text", ".asc", true, sources.NonCanonicalSignature, "a text signature holds for other line ends, too")
	add("ssh-rsa1024", ".pub", true, sources.WeakAlgorithm, "G4: RSA of 1024 bits")
	add("ssh-dsa1024", ".pub", true, sources.WeakAlgorithm, "G4: DSA")
	add("ssh-rsa-sha1", ".pub", false, sources.WeakAlgorithm, "")
	add("ssh-digest-sha1", ".pub", false, sources.WeakAlgorithm, "")
	return all
}

// twinSamples are good commits after a keyless edit (G3), and commits with a
// good signature over what git reads in another way than it is stored (G1, G2).
func twinSamples(t *testing.T) map[string]sample {
	t.Helper()
	alice := sshKey(t, "alice")
	ssh, pgp := signed(t, payloadAt(noon), alice), fixture(t, "tools/gpg-2.4.commit")
	all := map[string]sample{}
	add := func(name, commit string, git bool, ours sources.Reason, why string) {
		s := sample{commit: commit, file: "alice.pub", key: alice.Line, git: git, ours: ours, why: why}
		if strings.Contains(commit, "BEGIN PGP") {
			s.file, s.key = "alice.asc", fixture(t, "tools/gpg-2.4.asc")
		}
		all["twin: "+name] = s
	}
	const free = "G3: a free choice that no signature covers"
	add("gpgsig-sha256", strings.Replace(ssh, "\ngpgsig ", "\ngpgsig-sha256 x\ngpgsig ", 1), true, sources.NonCanonicalSignature, free)
	add("armor comment", edit(t, pgp, func(s string) string { return strings.Replace(s, "\n\n", "\nComment: x\n\n", 1) }), true, sources.NonCanonicalSignature, free)
	add("junk after END", edit(t, pgp, func(s string) string { return s + "\njunk" }), true, sources.NonCanonicalSignature, free)
	add("another width", edit(t, ssh, func(s string) string { return rewrapSSH(s, 60) }), true, sources.NonCanonicalSignature, free)
	add("unhashed subpacket", editUnhashed(t, pgp, func(b []byte) []byte { return append(b, 2, 100, 'x') }), true, sources.NonCanonicalSignature, free)
	add("second signature", strings.Replace(ssh, "\n\nmessage", "\ngpgsig "+folded(t, ssh)+"\n\nmessage", 1), true, sources.NonCanonicalSignature, free)
	add("another packet header", editPacket(t, pgp, func(b []byte) []byte { return append([]byte{0xc2}, b[1:]...) }), true, "", "")

	const parsed = "two readers could see two commits"
	two := strings.Replace(payloadAt(noon), "tree ", "tree "+idA+"\ntree ", 1)
	add("G1: two trees", signed(t, two, alice), true, sources.MalformedCommit, parsed)
	add("G1: parent after author", signed(t, strings.Replace(payloadAt(noon), "committer", "parent "+idA+"\ncommitter", 1), alice), true, sources.MalformedCommit, parsed)
	add("G1: header before tree", signed(t, "x-extra 1\n"+payloadAt(noon), alice), false, sources.MalformedCommit, "")
	add("G1: encoding before committer", signed(t, strings.Replace(payloadAt(noon), "committer", "encoding UTF-8\ncommitter", 1), alice), true, sources.MalformedCommit, parsed)
	add("G2: a space more", signed(t, strings.Replace(payloadAt(noon), " <author", "  <author", 1), alice), true, "", "")
	add("G2: a space taken out after signing", strings.Replace(signed(t, strings.Replace(payloadAt(noon), " <author", "  <author", 1), alice), "  <author", " <author", 1), false, sources.BadSignature, "")
	return all
}
