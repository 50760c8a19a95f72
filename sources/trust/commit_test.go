package trust

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
)

const (
	idA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	idB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

	tree      = "tree " + emptyTree + "\n"
	author    = "author A U Thor <author@example.com> 1717243200 +0000\n"
	committer = "committer C O Mitter <committer@example.com> 1717243260 -0130\n"
	message   = "\nmessage\n"
	plain     = tree + "parent " + idA + "\n" + author + committer + message
)

func TestParseCommitGivesWhatGitWrote(t *testing.T) {
	c, err := ParseCommit(objectID(plain), []byte(plain))
	require.NoError(t, err)
	want := Commit{
		ID: objectID(plain), Tree: emptyTree, Parents: []string{idA},
		CommittedAt: time.Date(2024, 6, 1, 12, 1, 0, 0, time.UTC),
		Payload:     []byte(plain),
		PayloadHash: "69ca0c25f366fce0de194037311bd916d253d0243cbb32e842479afe7c951d87",
	}
	assert.Empty(t, cmp.Diff(want, c, cmpopts.IgnoreUnexported(Commit{})), "-want +got")
}

func TestParseCommitTakesWellFormedCommits(t *testing.T) {
	for name, raw := range map[string]string{
		"the first commit":                 tree + author + committer + message,
		"a merge":                          tree + "parent " + idA + "\nparent " + idB + "\n" + author + committer + message,
		"an empty message":                 tree + author + committer + "\n",
		"an encoding":                      tree + author + committer + "encoding ISO-8859-1\n\nGr\xfc\xdfe\n",
		"headers of other tools":           tree + author + committer + "change-id zzzz\nmergetag object a\n type commit\n \n text\n" + message,
		"two merged tags":                  tree + author + committer + "mergetag a\n b\nmergetag c\n" + message,
		"no name":                          tree + "author <author@example.com> 0 +0000\n" + committer + message,
		"no address":                       tree + "author A <> 1717243200 +0000\n" + committer + message,
		"text in the message like headers": tree + author + committer + "\ntree x\ngpgsig y\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseCommit(objectID(raw), []byte(raw))
			assert.NoError(t, err)
		})
	}
}

// Nothing that another reader could take for another tree, other parents or
// another author is parsed at all, whatever its signature (G1, G2).
func TestParseCommitRefusesWhatCouldBeReadInTwoWays(t *testing.T) {
	for name, raw := range map[string]string{
		"G1: two trees":                           tree + "tree " + idB + "\n" + author + committer + message,
		"G1: a second tree at the end":            tree + author + committer + "tree " + idB + "\n" + message,
		"G1: a parent after the author":           tree + author + "parent " + idA + "\n" + committer + message,
		"G1: a parent after the committer":        tree + author + committer + "parent " + idA + "\n" + message,
		"G1: a header before the tree":            "x-extra 1\n" + plain,
		"G1: a header between tree and author":    tree + "x-extra 1\n" + author + committer + message,
		"G1: the encoding before the committer":   tree + author + "encoding UTF-8\n" + committer + message,
		"G1: two encodings":                       tree + author + committer + "encoding UTF-8\nencoding ISO-8859-1\n" + message,
		"G1: two authors":                         tree + author + author + committer + message,
		"G1: two committers":                      tree + author + committer + committer + message,
		"G2: an extra space":                      strings.Replace(plain, "tree ", "tree  ", 1),
		"G2: a space at the end of an id":         strings.Replace(plain, emptyTree, emptyTree+" ", 1),
		"G2: author and committer in other order": tree + committer + author + message,
		"no tree":                               author + committer + message,
		"no author":                             tree + committer + message,
		"no committer":                          tree + author + message,
		"no empty line after the headers":       tree + author + strings.TrimSuffix(committer, "\n"),
		"headers end in a continuation":         tree + author + committer + "mergetag a\n b",
		"a continued tree":                      tree + " " + idB + "\n" + author + committer + message,
		"a continued author":                    tree + author + " more\n" + committer + message,
		"begins with a continuation":            " " + plain,
		"a header without value":                tree + author + committer + "change-id\n" + message,
		"a header name in capitals":             tree + author + committer + "Change-Id x\n" + message,
		"an id in capitals":                     strings.Replace(plain, emptyTree, strings.ToUpper(emptyTree), 1),
		"a short id":                            strings.Replace(plain, emptyTree, emptyTree[1:], 1),
		"an id of the other kind of repository": strings.Replace(plain, emptyTree, strings.Repeat("a", 64), 1),
		"a parent that is no id":                strings.Replace(plain, idA, "refs/heads/main", 1),
		"a NUL byte in a header":                strings.Replace(plain, "A U Thor", "A\x00Thor", 1),
		"a NUL byte in the message":             plain + "\x00",
		"a carriage return in a name":           strings.Replace(plain, "A U Thor", "A\rThor", 1),
		"carriage returns at the ends of lines": strings.ReplaceAll(plain, "\n", "\r\n"),
		"a carriage return in another header":   tree + author + committer + "change-id x\r\n" + message,
		"an escape sequence in a name":          strings.Replace(plain, "A U Thor", "A\x1b[2JThor", 1),
		"an address that is not closed":         strings.Replace(plain, "author@example.com>", "author@example.com", 1),
		"two addresses":                         strings.Replace(plain, "A U Thor", "A <x@y> Thor", 1),
		"no space before the address":           strings.Replace(plain, "Thor <", "Thor<", 1),
		"no time":                               strings.Replace(plain, "1717243260 -0130", "", 1),
		"a negative time":                       strings.Replace(plain, "1717243260", "-1", 1),
		"a time with a leading zero":            strings.Replace(plain, "1717243260", "01717243260", 1),
		"a time beyond the year 9999":           strings.Replace(plain, "1717243260", "253402300800", 1),
		"a time that overflows":                 strings.Replace(plain, "1717243260", "18446744073709551616", 1),
		"a zone without sign":                   strings.Replace(plain, "-0130", "0130", 1),
		"a zone in letters":                     strings.Replace(plain, "-0130", "-UTC0", 1),
		"something after the zone":              strings.Replace(plain, "-0130", "-0130 x", 1),
		"too many parents":                      tree + strings.Repeat("parent "+idA+"\n", maxParents+1) + author + committer + message,
		"nothing":                               "",
		"only an empty line":                    "\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseCommit(objectID(raw), []byte(raw))
			assert.Equal(t, sources.MalformedCommit, sources.ReasonOf(err), "%v", err)
			assert.ErrorContains(t, err, objectID(raw)[:12])
		})
	}
}

func TestParseCommitRefusesBytesThatAreNotThoseOfTheID(t *testing.T) {
	for _, id := range []string{objectID(plain + "x"), strings.Repeat("a", 64), "", "main", strings.ToUpper(objectID(plain))} {
		_, err := ParseCommit(id, []byte(plain))
		assert.Equal(t, sources.MalformedCommit, sources.ReasonOf(err), "%q: %v", id, err)
	}
}

func TestParseCommitIsBounded(t *testing.T) {
	raw := plain + strings.Repeat("x", maxCommit)
	_, err := ParseCommit(objectID(raw), []byte(raw))
	assert.Equal(t, sources.LimitExceeded, sources.ReasonOf(err))
}

// A repository of the newer kind names its objects by SHA-256 and calls the
// header of the signature gpgsig-sha256.
func TestParseCommitReadsRepositoriesOfBothKinds(t *testing.T) {
	r := newRepo(t)
	r.Remove(".git")
	r.Git("init", "--quiet", "--object-format=sha256", "--initial-branch=main")
	alice := sshKey(t, "alice")
	id := r.Commit("first", alice)
	require.Len(t, id, 64)
	text := raw(t, r, id)
	require.Contains(t, text, "\ngpgsig-sha256 ")

	c, err := ParseCommit(id, []byte(text))
	require.NoError(t, err)
	_, err = Policy{Now: noon}.Verify(c, signers(t, alice))
	assert.NoError(t, err)
}

// The payload is the stored bytes without the signature, however often and
// under whatever name it stands there: twins have the same.
func TestPayloadHashIsThatOfTheCommitWithoutSignatures(t *testing.T) {
	alice := sshKey(t, "alice")
	one := signed(t, plain, alice)
	for name, raw := range map[string]string{
		"unsigned":               plain,
		"signed":                 one,
		"signed twice":           withSignature(one, "x"),
		"of both kinds":          strings.Replace(one, "\ngpgsig ", "\ngpgsig-sha256 x\ngpgsig ", 1),
		"with other line breaks": strings.Replace(one, "\n ", "\n \n ", 1),
	} {
		c, err := parseObject(objectID(raw), []byte(raw))
		require.NoError(t, err, name)
		assert.Equal(t, plain, string(c.Payload), name)
		assert.Equal(t, parse(t, plain).PayloadHash, c.PayloadHash, name)
	}
	other := parse(t, strings.Replace(plain, "message", "other", 1))
	assert.NotEqual(t, parse(t, plain).PayloadHash, other.PayloadHash)
}
