package git_test

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/git"
)

func FuzzReceive(f *testing.F) {
	var plain packer
	plain.history("hello\n")
	f.Add(plain.bytes())
	var deltas packer
	base := deltas.entry(blobType, 4, nil, deflate([]byte("base")))
	offset := 12 + deltas.body.Len()
	deltas.entry(ofsDelta, 5, back(offset-base), deflate(copyFour()))
	deltas.entry(refDelta, 5, []byte("01234567890123456789"), deflate(copyFour()))
	f.Add(deltas.bytes())
	f.Add([]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff"))
	limits := sources.Limits{PackBytes: 1 << 16, ObjectBytes: 1 << 12, Objects: 100}
	f.Fuzz(func(t *testing.T, pack []byte) {
		// The checksum is no protection: whoever sends the pack makes it.
		if len(pack) > 20 {
			var p packer
			p.body.Write(pack[min(12, len(pack)):])
			p.count = uint32(pack[len(pack)-1]) % 8
			pack = p.bytes()
		}
		_ = git.Receive(t.Context(), filepath.Join(t.TempDir(), "r"), bytes.NewReader(pack), limits)
	})
}

func FuzzTreeEntries(f *testing.F) {
	f.Add([]byte(treeLine("100644", "file", objectID(blobType, "x")) + treeLine("40000", "dir", objectID(blobType, "y"))))
	f.Add([]byte(treeLine("160000", ".git", objectID(blobType, "x"))))
	f.Add([]byte("100644 cut"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		names, again, err := git.Entries(raw)
		if err != nil {
			return
		}
		if len(again) > len(raw)+8*bytes.Count(raw, []byte{0}) {
			t.Errorf("%q was read as the longer %q", raw, again)
		}
		for _, name := range names {
			if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "/\\") || strings.ContainsFunc(name, unicode.IsControl) || strings.EqualFold(name, ".git") {
				t.Errorf("%q passed", name)
			}
		}
	})
}

func FuzzCommitHeaders(f *testing.F) {
	tree, parent := objectID(treeType, ""), objectID(commitType, "x")
	f.Add([]byte(commitOf(tree)))
	f.Add([]byte(commitOf(tree, parent, parent)))
	f.Add([]byte("tree " + tree))
	f.Fuzz(func(t *testing.T, raw []byte) {
		tree, parents, err := git.Parents(raw)
		if err != nil {
			return
		}
		text := "tree " + tree + "\n"
		for _, p := range parents {
			text += "parent " + p + "\n"
		}
		if !strings.HasPrefix(strings.ToLower(string(raw)), text) {
			t.Errorf("%q was read as %q", raw, text)
		}
	})
}

func FuzzRemoteURL(f *testing.F) {
	for _, url := range []string{
		"https://git.example.com/org/fleet.git", "ssh://git@h:22/a b", "git@h:p", "http://[::1]:80/p", "https://u:p@h/p", "https://h/%2e%2e/x", "ssh://h/$(id)",
	} {
		f.Add(url)
	}
	dir := f.TempDir()
	shell := regexp.MustCompile("['\"`$\\\\!;&|<>(){}*?#\x00-\x1f\x7f-\U0010ffff]")
	f.Fuzz(func(t *testing.T, url string) {
		err := git.Remote{URL: url, Branch: main, Timeout: time.Second, Credentials: dir}.Validate()
		if err != nil {
			return
		}
		if scheme, _, _ := strings.Cut(url, "://"); scheme == "ssh" {
			t.Errorf("%q passed without known_hosts", url)
		}
		if shell.MatchString(url) {
			t.Errorf("%q passed", url)
		}
	})
}
