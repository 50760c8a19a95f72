package git_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/carriertest"
	"github.com/fleetling/fleetling/discovery/registry/git"
)

func carrier(t *testing.T, member string, refs git.Refs) *git.Carrier {
	t.Helper()
	seconds := int64(0)
	c, err := git.New(member, refs, func() time.Time { seconds++; return time.Unix(seconds, 0) })
	require.NoError(t, err)
	return c
}

func TestGitIsACarrier(t *testing.T) {
	carriertest.Run(t, func(t *testing.T) carriertest.Registry {
		t.Helper()
		r := newRepository()
		return carriertest.Registry{
			Open:   func(member string) discovery.Carrier { return carrier(t, member, r) },
			Writes: func() int { pushes, _ := r.count(); return pushes },
		}
	})
}

// seen asks for the heads, by name.
func seen(t *testing.T, c *git.Carrier) map[string]discovery.Head {
	t.Helper()
	heads, err := c.Heads(t.Context())
	require.NoError(t, err)
	byName := map[string]discovery.Head{}
	for _, h := range heads {
		byName[h.Member] = h
	}
	return byName
}

func record(text string) map[string][]byte { return map[string][]byte{"record": []byte(text)} }

func head(member, record string) discovery.Head {
	return discovery.Head{Member: member, Record: discovery.DigestOf([]byte(record))}
}

func TestABranchIsOneCommitOfTheseFiles(t *testing.T) {
	r := newRepository()
	part := []byte("a part")
	require.NoError(t, carrier(t, "alice", r).Put(t.Context(), discovery.Own{
		Record: []byte("r"), Status: []byte("s"), Parts: map[discovery.Digest][]byte{discovery.DigestOf(part): part},
	}))
	hex := strings.TrimPrefix(string(discovery.DigestOf(part)), "sha256:")
	paths, author := r.at(t, "refs/heads/members/alice")
	assert.Equal(t, []string{"parts/" + hex, "record", "status"}, paths)
	assert.Equal(t, "alice 1", author)
}

func TestABrokenBranchKeepsItsLastGoodHead(t *testing.T) {
	hex := strings.Repeat("0123456789abcdef", 4)
	many := map[string][]byte{}
	for i := range 5001 {
		many[fmt.Sprintf("parts/%064x", i)] = nil
	}
	for name, test := range map[string]struct {
		files map[string][]byte
		words string
	}{
		"with a file that does not belong there":   {map[string][]byte{"record": nil, "README.md": nil}, `"README.md": no such file`},
		"with a folder that does not belong there": {map[string][]byte{"more/record": nil}, `"more"`},
		"with a folder in the record's place":      {map[string][]byte{"record/x": nil}, `"record": is not a file`},
		"with a file in the parts' place":          {map[string][]byte{"parts": nil}, `"parts"`},
		"with a part that is named otherwise":      {map[string][]byte{"parts/a": nil}, `parts/"a"`},
		"with a part in capitals":                  {map[string][]byte{"parts/" + strings.ToUpper(hex): nil}, "lower-case"},
		"with a folder as a part":                  {map[string][]byte{"parts/" + hex + "/x": nil}, "is not a file"},
		"with a record that is too big":            {map[string][]byte{"record": make([]byte, 1<<20+1)}, `"record": has 1048577 bytes`},
		"with a part that is too big":              {map[string][]byte{"parts/" + hex: make([]byte, 1<<20+1)}, "has 1048577 bytes"},
		"with too many parts":                      {many, "5001 parts"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository()
			reader := carrier(t, "reader", r)
			good := r.commit(git.Prefix+"alice", record("good"))
			r.commit(git.Prefix+"bob", record("b1"))
			want := map[string]discovery.Head{"alice": head("alice", "good"), "bob": head("bob", "b1")}
			assert.Equal(t, want, seen(t, reader))
			assert.Empty(t, reader.Problems())

			r.commit(git.Prefix+"alice", test.files)
			r.commit(git.Prefix+"bob", record("b2"))
			want["bob"] = head("bob", "b2")
			for range 2 { // the problem is told as long as it lasts
				assert.Equal(t, want, seen(t, reader))
				assert.ErrorContains(t, reader.Problems()["alice"], "branch refs/heads/members/alice at ")
				assert.ErrorContains(t, reader.Problems()["alice"], test.words)
				assert.Len(t, reader.Problems(), 1)
			}
			_, before := r.count()
			seen(t, reader)
			_, after := r.count()
			assert.Equal(t, before, after, "a verdict stands as long as the commit does")
			assert.Contains(t, r.keeps(), good)
			data, err := reader.Get(t.Context(), "alice", head("alice", "good").Record)
			require.NoError(t, err)
			assert.Equal(t, "good", string(data))

			r.commit(git.Prefix+"alice", record("mended"))
			want["alice"] = head("alice", "mended")
			assert.Equal(t, want, seen(t, reader))
			assert.Empty(t, reader.Problems())
		})
	}
}

func TestALinkIsNoRecord(t *testing.T) {
	r := newRepository()
	commit := r.commit(git.Prefix+"alice", record("/etc/passwd"))
	r.set(func() { r.commits[commit]["record"].Mode = fs.ModeSymlink })
	r.commit(git.Prefix+"bob", record("b"))
	reader := carrier(t, "reader", r)
	assert.Equal(t, map[string]discovery.Head{"bob": head("bob", "b")}, seen(t, reader))
	assert.ErrorContains(t, reader.Problems()["alice"], `"record": is not a file`)
}

func TestABranchThatIsNamedByNoMemberIsNoMember(t *testing.T) {
	r := newRepository()
	r.commit(git.Prefix+"bob", record("b"))
	for _, name := range []string{"Alice", "a.b", "team/alice", "-a", strings.Repeat("a", 33)} {
		r.commit(git.Prefix+name, record("x"))
		reader := carrier(t, "reader", r)
		assert.Equal(t, map[string]discovery.Head{"bob": head("bob", "b")}, seen(t, reader))
		assert.ErrorContains(t, reader.Problems()[name], "not named by a member")
		r.set(func() { delete(r.branches, git.Prefix+name) })
	}
}

func TestWhatCanNotBeFetchedIsAProblemOfTheMember(t *testing.T) {
	r := newRepository()
	r.commit(git.Prefix+"bob", record("b"))
	big := errors.New("too big")
	r.set(func() { r.unread = map[string]error{git.Prefix + "alice": big} })
	reader := carrier(t, "reader", r)
	assert.Equal(t, map[string]discovery.Head{"bob": head("bob", "b")}, seen(t, reader))
	assert.Equal(t, map[string]error{"alice": big}, reader.Problems())
}

func TestHeadsAreAnErrorAndNeverEmpty(t *testing.T) {
	down := errors.New("down")
	for name, test := range map[string]struct {
		prepare func(*repository)
		words   string
	}{
		"where the server is down":      {func(r *repository) { r.fail = down }, "heads: down"},
		"where the folder can't be had": {func(r *repository) { r.broken = down }, "no member's branch can be read"},
		"where no branch can be had":    {func(r *repository) { r.unread = map[string]error{git.Prefix + "bob": down}; r.broken = fs.ErrInvalid }, "no member's branch"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository()
			r.commit(git.Prefix+"alice", record("a"))
			reader := carrier(t, "reader", r)
			r.set(func() { test.prepare(r) })
			heads, err := reader.Heads(t.Context())
			assert.ErrorContains(t, err, test.words)
			assert.Nil(t, heads)
			r.set(func() { r.fail, r.broken, r.unread = nil, nil, nil })
			assert.Equal(t, map[string]discovery.Head{"alice": head("alice", "a")}, seen(t, reader), "it is looked at again")
		})
	}
}

func TestHeadsReadOnlyWhatChanged(t *testing.T) {
	r := newRepository()
	for i := range 5 {
		r.commit(fmt.Sprintf("%sm%d", git.Prefix, i), record("r"))
	}
	reader := carrier(t, "reader", r)
	seen(t, reader)
	_, before := r.count()
	seen(t, reader)
	_, idle := r.count()
	assert.Equal(t, before, idle)
	r.commit(git.Prefix+"m3", record("changed"))
	seen(t, reader)
	_, after := r.count()
	assert.Equal(t, before+1, after)
}

func TestHeadsForgetAMemberWhoseBranchIsGone(t *testing.T) {
	r := newRepository()
	r.commit(git.Prefix+"alice", record("a"))
	reader := carrier(t, "reader", r)
	seen(t, reader)
	r.set(func() { delete(r.branches, git.Prefix+"alice") })
	assert.Empty(t, seen(t, reader))
	_, err := reader.Get(t.Context(), "alice", head("alice", "a").Record)
	assert.ErrorIs(t, err, discovery.ErrNotFound)
}

func TestAPartOfOtherBytesIsNotFound(t *testing.T) {
	r := newRepository()
	digest := discovery.DigestOf([]byte("a part"))
	hex := strings.TrimPrefix(string(digest), "sha256:")
	r.commit(git.Prefix+"alice", map[string][]byte{"record": []byte("r"), "parts/" + hex: []byte("other bytes")})
	reader := carrier(t, "reader", r)
	seen(t, reader)
	data, err := reader.Get(t.Context(), "alice", digest)
	assert.ErrorIs(t, err, discovery.ErrNotFound)
	assert.ErrorContains(t, err, "other bytes")
	assert.Nil(t, data)
}

func TestAFailureToReadIsNotNotFound(t *testing.T) {
	r := newRepository()
	r.commit(git.Prefix+"alice", record("a"))
	reader := carrier(t, "reader", r)
	seen(t, reader)
	r.set(func() { r.broken = errors.New("damaged") })
	_, err := reader.Get(t.Context(), "alice", head("alice", "a").Record)
	assert.ErrorContains(t, err, "damaged")
	assert.NotErrorIs(t, err, discovery.ErrNotFound)
}

func TestPutRefusesWhatOthersDoNotRead(t *testing.T) {
	r := newRepository()
	part := make([]byte, 1<<20)
	parts := map[discovery.Digest][]byte{}
	for i := range 33 {
		data := append(part[:len(part)-1:len(part)-1], byte(i))
		parts[discovery.DigestOf(data)] = data
	}
	many := map[discovery.Digest][]byte{}
	for i := range 5001 {
		many[discovery.DigestOf(fmt.Append(nil, i))] = fmt.Append(nil, i)
	}
	for name, test := range map[string]struct {
		own   discovery.Own
		words string
	}{
		"a record that is too big": {discovery.Own{Record: make([]byte, 1<<20+1)}, "put alice: record: has 1048577 bytes"},
		"too many bytes":           {discovery.Own{Parts: parts}, "33 parts, 34603008 bytes"},
		"too many parts":           {discovery.Own{Parts: many}, "5001 parts"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorContains(t, carrier(t, "alice", r).Put(t.Context(), test.own), test.words)
		})
	}
	pushes, _ := r.count()
	assert.Zero(t, pushes)
}

func TestPutMendsABranchThatSomebodyElseChanged(t *testing.T) {
	r := newRepository()
	alice := carrier(t, "alice", r)
	own := discovery.Own{Record: []byte("r")}
	require.NoError(t, alice.Put(t.Context(), own))
	r.commit(git.Prefix+"alice", record("not alice's"))
	require.NoError(t, alice.Put(t.Context(), own))
	assert.Equal(t, map[string]discovery.Head{"alice": head("alice", "r")}, seen(t, carrier(t, "bob", r)))
}

func TestNewRefusesANameThatIsNoLabel(t *testing.T) {
	for _, name := range []string{"", "A", "a.b", "a/b", "-a", "a-", strings.Repeat("a", 33)} {
		_, err := git.New(name, newRepository(), time.Now)
		assert.ErrorContains(t, err, "DNS label", name)
	}
}
