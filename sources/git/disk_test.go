package git_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/gittest"
)

// glob gives the one file that matches.
func glob(t *testing.T, pattern ...string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(pattern...))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	require.NoError(t, os.Truncate(path, size))
}

func remove(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(path))
}

// damage is done to the repository in dir.
type damage func(t *testing.T, dir string)

// cut leaves size bytes of the one file that matches.
func cut(pattern string, size int64) damage {
	return func(t *testing.T, dir string) {
		t.Helper()
		truncate(t, glob(t, dir, pattern), size)
	}
}

// without removes what matches.
func without(pattern string) damage {
	return func(t *testing.T, dir string) {
		t.Helper()
		remove(t, glob(t, dir, pattern))
	}
}

// holds makes path hold another content.
func holds(path, content string) damage {
	return func(t *testing.T, dir string) {
		t.Helper()
		write(t, filepath.Join(dir, path), content)
	}
}

func TestFetchReplacesARepositoryThatIsDamaged(t *testing.T) {
	repo := seeded(t)
	first := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	first.Have = fetch(t, first).Head
	repo.Git("checkout", "--quiet", "-b", "moved")
	repo.Commit("next", nil)
	for name, damage := range map[string]damage{
		"pack cut off": cut("objects/pack/*.pack", 100),
		"pack cut by one byte": func(t *testing.T, dir string) {
			t.Helper()
			pack := glob(t, dir, "objects/pack/*.pack")
			truncate(t, pack, size(t, pack)-1)
		},
		"pack empty":    cut("objects/pack/*.pack", 0),
		"pack deleted":  without("objects/pack/*.pack"),
		"index deleted": without("objects/pack/*.idx"),
		"index cut off": cut("objects/pack/*.idx", 1100),
		"pack and index deleted": func(t *testing.T, dir string) {
			t.Helper()
			remove(t, filepath.Join(dir, "objects/pack"))
			write(t, filepath.Join(dir, "objects/pack/x"), "")
		},
		"list of packs deleted":   without("objects/info/packs"),
		"list of packs garbage":   holds("objects/info/packs", "P ../../etc/passwd\n"),
		"list names another pack": holds("objects/info/packs", "P pack-"+strings.Repeat("0", 40)+".pack\n"),
		"HEAD garbage":            holds("HEAD", "\x00\xff"),
		"HEAD a symbolic ref":     holds("HEAD", "ref: refs/heads/main\n"),
		"HEAD empty":              holds("HEAD", ""),
		"HEAD deleted":            without("HEAD"),
		"objects deleted":         without("objects"),
		"a file in its place": func(t *testing.T, dir string) {
			t.Helper()
			remove(t, dir)
			write(t, dir, "x")
		},
		"an empty folder": func(t *testing.T, dir string) {
			t.Helper()
			remove(t, dir)
			require.NoError(t, os.Mkdir(dir, 0o700))
		},
		"a link in its place": func(t *testing.T, dir string) {
			t.Helper()
			remove(t, dir)
			require.NoError(t, os.Symlink("/nowhere", dir))
		},
	} {
		for _, moved := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, branch moved: %t", name, moved), func(t *testing.T) {
				r := request(t, first.URL)
				r.Have = first.Have
				if moved {
					r.Branch = "refs/heads/moved"
				}
				require.NoError(t, os.CopyFS(r.Dir, os.DirFS(first.Dir)))
				damage(t, r.Dir)
				_, err := git.Open(r.Dir, sources.DefaultLimits())
				require.Error(t, err)
				assert.NotErrorIs(t, err, fs.ErrNotExist)
				got := fetch(t, r)
				assert.True(t, got.Fresh)
				assert.Equal(t, moved, got.Changed)
				whole(t, r.Dir, repo.Git("rev-parse", r.Branch))
				alone(t, r.Dir)
			})
		}
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

// alone asserts that nothing is left beside dir.
func alone(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.Equal(t, filepath.Base(dir), entries[0].Name())
}

func TestDamageInTheMiddleIsFoundByReadingAndMendedByFetching(t *testing.T) {
	repo := seeded(t)
	grow(t, repo, "more", 30)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	r.Have = fetch(t, r).Head
	path := glob(t, r.Dir, "objects/pack/*.pack")
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	commits, tree := splitLines(repo.Git("rev-list", "main")), repo.Git("rev-parse", "main^{tree}")
	source := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 100 {
		bad := bytes.Clone(good)
		for range 8 {
			bad[12+source.IntN(len(bad)-32)] ^= byte(1 << source.IntN(8))
		}
		require.NoError(t, os.Chmod(path, 0o600))
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		if err := readAll(t, r.Dir, repo.Dir, commits, tree); err != nil {
			found++
			assert.NotErrorIs(t, err, fs.ErrNotExist)
			assert.ErrorContains(t, err, "the next fetch replaces it")
			if found%10 == 1 {
				assert.True(t, fetch(t, r).Fresh)
				whole(t, r.Dir, repo.Head())
				path = glob(t, r.Dir, "objects/pack/*.pack")
				good, err = os.ReadFile(path)
				require.NoError(t, err)
			} else {
				remove(t, filepath.Join(r.Dir, "damaged"))
			}
		}
	}
	assert.Greater(t, found, 20, "damage was read")
}

// readAll reads commits and the files of a tree, which it compares with those of
// the working copy. It gives the first error.
func readAll(t *testing.T, dir, workingCopy string, commits []string, id string) error {
	t.Helper()
	disk := open(t, dir)
	for _, id := range commits {
		if _, err := disk.Commit(t.Context(), id); err != nil {
			return err
		}
	}
	tree, err := disk.Tree(t.Context(), id)
	if err != nil {
		return err
	}
	return fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if _, err := entry.Info(); err != nil {
			return err
		}
		got, err := fs.ReadFile(tree, path)
		if err == nil {
			want, readErr := os.ReadFile(filepath.Join(workingCopy, path))
			require.NoError(t, readErr)
			assert.Equal(t, string(want), string(got), path)
		}
		return err
	})
}

func TestWhatIsReadIsComparedWithItsID(t *testing.T) {
	repo := seeded(t)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	fetch(t, r)
	require.NoError(t, git.Misindex(r.Dir))
	disk := open(t, r.Dir)
	_, err := disk.Commit(t.Context(), repo.Head())
	require.ErrorContains(t, err, "its content is not what its id says")
	_, err = disk.Tree(t.Context(), repo.Git("rev-parse", "HEAD^{tree}"))
	require.ErrorContains(t, err, "its content is not what its id says")
	assert.True(t, fetch(t, r).Fresh)
	whole(t, r.Dir, repo.Head())
}

func TestAnObjectThatVanishedIsDamageAndNeverAnEmptyFolder(t *testing.T) {
	repo := seeded(t)
	full := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	full.Have = fetch(t, full).Head
	folder, file := repo.Git("rev-parse", "HEAD:addons/a"), repo.Git("rev-parse", "HEAD:addons/a/cm.yaml")
	for name, gone := range map[string]string{"a folder": folder, "a file": file} {
		t.Run(name, func(t *testing.T) {
			r := full
			r.Dir = request(t, "").Dir
			fetch(t, r)
			old := strings.TrimSuffix(glob(t, r.Dir, "objects/pack/*.pack"), ".pack")
			var kept []string
			for _, line := range splitLines(repo.Git("rev-list", "--objects", "HEAD")) {
				if id, _, _ := strings.Cut(line, " "); id != gone {
					kept = append(kept, id)
				}
			}
			pack := repo.GitInput(strings.Join(kept, "\n")+"\n", "pack-objects", "--quiet", filepath.Join(r.Dir, "objects/pack/pack"))
			write(t, filepath.Join(r.Dir, "objects/info/packs"), "P pack-"+pack+".pack\n")
			remove(t, old+".pack")
			remove(t, old+".idx")
			assert.False(t, fetch(t, r).Fresh)

			tree := treeIn(t, r.Dir, repo.Git("rev-parse", "HEAD^{tree}"), sources.DefaultLimits())
			for _, err := range everyRead(tree, "addons/a/cm.yaml")[:3] {
				require.ErrorContains(t, err, "the next fetch replaces it")
				assert.NotErrorIs(t, err, fs.ErrNotExist)
			}
			err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
				if err == nil && !entry.IsDir() {
					_, err = fs.ReadFile(tree, path)
				}
				return err
			})
			require.ErrorContains(t, err, "the next fetch replaces it")
			assert.True(t, fetch(t, r).Fresh)
			whole(t, r.Dir, repo.Head())
		})
	}
}

func TestDamagedIndexIsFoundByOpeningAndMendedByFetching(t *testing.T) {
	repo := seeded(t)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	r.Have = fetch(t, r).Head
	path := glob(t, r.Dir, "objects/pack/*.idx")
	index, err := os.ReadFile(path)
	require.NoError(t, err)
	index[1100] ^= 1
	require.NoError(t, os.WriteFile(path, index, 0o600))
	assert.False(t, fetch(t, r).Fresh, "what is not read is not looked at each time")
	_, err = git.Open(r.Dir, sources.DefaultLimits())
	require.ErrorContains(t, err, "the next fetch replaces it")
	assert.True(t, fetch(t, r).Fresh)
	whole(t, r.Dir, repo.Head())

	index[1100] ^= 1
	t.Run("found by fetching", func(t *testing.T) {
		path := glob(t, r.Dir, "objects/pack/*.idx")
		index, err := os.ReadFile(path)
		require.NoError(t, err)
		index[1100] ^= 1
		require.NoError(t, os.WriteFile(path, index, 0o600))
		head := repo.Commit("next", nil)
		assert.True(t, fetch(t, r).Fresh)
		whole(t, r.Dir, head)
	})
}

func TestAnOpenRepositoryIsReadWhileAnotherTakesItsPlace(t *testing.T) {
	repo := seeded(t)
	first := repo.Head()
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	fetch(t, r)
	disk := open(t, r.Dir)
	tree, err := disk.Tree(t.Context(), repo.Git("rev-parse", "HEAD^{tree}"))
	require.NoError(t, err)
	repo.Remove("addons")
	repo.Git("commit", "--quiet", "--all", "--amend", "--message", "rewritten")
	write(t, filepath.Join(r.Dir, "damaged"), "")
	assert.True(t, fetch(t, r).Fresh)
	_, err = disk.Commit(t.Context(), first)
	assert.NoError(t, err)
	data, err := fs.ReadFile(tree, "addons/a/cm.yaml")
	require.NoError(t, err)
	assert.Equal(t, "kind: ConfigMap\n", string(data))
	assert.NoFileExists(t, filepath.Join(r.Dir, "damaged"))
}

func TestReadingAClosedRepositoryIsAnErrorAndNoDamage(t *testing.T) {
	repo := seeded(t)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	fetch(t, r)
	disk, err := git.Open(r.Dir, sources.DefaultLimits())
	require.NoError(t, err)
	tree, err := disk.Tree(t.Context(), repo.Git("rev-parse", "HEAD^{tree}"))
	require.NoError(t, err)
	require.NoError(t, disk.Close())
	require.NoError(t, disk.Close())
	_, err = disk.Commit(t.Context(), repo.Head())
	assert.ErrorIs(t, err, fs.ErrClosed)
	_, err = fs.ReadFile(tree, "fleetling.yaml")
	assert.ErrorIs(t, err, fs.ErrClosed)
	_, err = fs.Stat(tree, "fleetling.yaml")
	assert.ErrorIs(t, err, fs.ErrClosed)
	assert.NoFileExists(t, filepath.Join(r.Dir, "damaged"))
}

func TestFetchSweepsWhatAKilledOneLeft(t *testing.T) {
	repo := seeded(t)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	fetch(t, r)
	for _, path := range []string{
		r.Dir + ".new/objects/pack/incoming.pack", r.Dir + ".old/HEAD",
		r.Dir + "/objects/pack/incoming.pack", r.Dir + "/objects/pack/incoming.idx.next",
		r.Dir + "/objects/pack/pack-" + strings.Repeat("1", 40) + ".pack", // installed, but not listed
		r.Dir + "/objects/pack/pack-" + strings.Repeat("2", 40) + ".idx",
		r.Dir + "/HEAD.next", r.Dir + "/objects/info/packs.next",
	} {
		write(t, path, "left")
	}
	fetch(t, r)
	alone(t, r.Dir)
	head := repo.Commit("next", nil)
	got := fetch(t, r)
	assert.False(t, got.Fresh)
	whole(t, r.Dir, head)
	var files []string
	for _, path := range []string{"", "objects/info", "objects/pack"} {
		entries, err := os.ReadDir(filepath.Join(r.Dir, path))
		require.NoError(t, err)
		for _, entry := range entries {
			files = append(files, filepath.Ext(entry.Name()))
		}
	}
	assert.ElementsMatch(t, []string{"", "", "", "", ".idx", ".idx", ".pack", ".pack"}, files)
}

func TestFetchKilledAtAnyMomentIsMadeGoodByTheNext(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for name, moment := range map[string]func(*http.Request) bool{
		"asking for refs":    func(req *http.Request) bool { return req.Method == http.MethodGet },
		"asking for objects": func(req *http.Request) bool { return req.Method == http.MethodPost },
	} {
		for _, existing := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, existing: %t", name, existing), func(t *testing.T) {
				repo := seeded(t)
				s := gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{})
				r := request(t, s.URL)
				if existing {
					r.Have = fetch(t, r).Head
					grow(t, repo, "more", 20)
				}
				data, err := json.Marshal(r)
				require.NoError(t, err)
				cmd := exec.CommandContext(t.Context(), self, "-fetch", string(data))
				s.SetBefore(func(req *http.Request) {
					if moment(req) {
						assert.NoError(t, cmd.Process.Kill())
					}
				})
				require.Error(t, cmd.Run(), "it was killed")
				s.SetBefore(nil)
				assert.Equal(t, !existing, fetch(t, r).Fresh)
				whole(t, r.Dir, repo.Head())
				alone(t, r.Dir)
			})
		}
	}
}

// Each case is what a fetch that was killed between two of its renames leaves:
// before is the repository as it was, after as it would have been.
func TestFetchKilledBetweenItsStepsIsMadeGoodByTheNext(t *testing.T) {
	repo := seeded(t)
	s := gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{})
	before := request(t, s.URL).Dir
	r := request(t, s.URL)
	r.Dir = before
	fetch(t, r)
	pack := glob(t, before, "objects/pack/*.pack")
	repo.Commit("second", nil)
	after := request(t, s.URL).Dir
	require.NoError(t, os.CopyFS(after, os.DirFS(before)))
	r.Dir = after
	fetch(t, r)
	clone := request(t, s.URL)
	fetch(t, clone)
	var news []string // of after's packs
	entries, err := os.ReadDir(filepath.Join(after, "objects/pack"))
	require.NoError(t, err)
	for _, entry := range entries {
		if !strings.HasPrefix(filepath.Base(pack), strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name()))) {
			news = append(news, "objects/pack/"+entry.Name())
		}
	}
	require.Len(t, news, 2)
	for name, test := range map[string]struct {
		copied  []string          // from after to before
		beside  map[string]string // folders, by what is appended to the name
		without bool              // before itself
		fresh   bool
	}{
		"index in place":             {copied: news[:1]},
		"pack in place":              {copied: news},
		"list written":               {copied: slices.Concat(news, []string{"objects/info/packs"})},
		"HEAD written":               {copied: slices.Concat(news, []string{"objects/info/packs", "HEAD"})},
		"clone not complete":         {beside: map[string]string{".new": before}},
		"clone complete":             {beside: map[string]string{".new": clone.Dir}},
		"clone to be put in place":   {beside: map[string]string{".new": clone.Dir, ".old": before}, without: true, fresh: true},
		"first clone to be in place": {beside: map[string]string{".new": clone.Dir}, without: true, fresh: true},
		"clone in place":             {copied: slices.Concat(news, []string{"objects/info/packs", "HEAD"}), beside: map[string]string{".old": before}},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t, s.URL)
			if !test.without {
				require.NoError(t, os.CopyFS(r.Dir, os.DirFS(before)))
			}
			for _, path := range test.copied {
				data, err := os.ReadFile(filepath.Join(after, path))
				require.NoError(t, err)
				remove(t, filepath.Join(r.Dir, path))
				write(t, filepath.Join(r.Dir, path), string(data))
			}
			for suffix, from := range test.beside {
				require.NoError(t, os.CopyFS(r.Dir+suffix, os.DirFS(from)))
			}
			assert.Equal(t, test.fresh, fetch(t, r).Fresh)
			whole(t, r.Dir, repo.Head())
			alone(t, r.Dir)
		})
	}
}

func TestFetchMakesOnePackOfFifty(t *testing.T) {
	repo := seeded(t)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	r.Have = fetch(t, r).Head
	list, err := os.ReadFile(filepath.Join(r.Dir, "objects/info/packs"))
	require.NoError(t, err)
	for i := range 48 {
		name := repo.GitInput(repo.GitInput(fmt.Sprint(i), "hash-object", "-w", "--stdin"), "pack-objects", "--quiet", filepath.Join(r.Dir, "objects/pack/pack"))
		list = fmt.Appendf(list, "P pack-%s.pack\n", name)
	}
	write(t, filepath.Join(r.Dir, "objects/info/packs"), string(list))

	repo.Commit("the fiftieth", nil)
	got := fetch(t, r)
	assert.False(t, got.Fresh)
	assert.Equal(t, 1, got.Objects)
	assert.False(t, fetch(t, r).Fresh, "a branch that stands still is no reason")
	head := repo.Commit("one more", nil)
	assert.True(t, fetch(t, r).Fresh)
	glob(t, r.Dir, "objects/pack/*.pack")
	whole(t, r.Dir, head)
	alone(t, r.Dir)
}

func TestFetchIntoAFolderThatCantBeWrittenSaysSo(t *testing.T) {
	r := request(t, gittest.ServeHTTP(t, seeded(t).Dir, gittest.HTTPOptions{}).URL)
	r.Dir = "/proc/fleetling/repository"
	refused(t, r, sources.Unreachable, "on disk can't be written", "/proc/fleetling")
}
