package git_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/gittest"
)

// treeOf fetches main and gives the files of its head.
func treeOf(tb testing.TB, repo *gittest.Repo, limits sources.Limits) fs.FS {
	tb.Helper()
	r := request(tb, gittest.ServeHTTP(tb, repo.Dir, gittest.HTTPOptions{}).URL)
	fetch(tb, r)
	return treeIn(tb, r.Dir, repo.Git("rev-parse", "main^{tree}"), limits)
}

func treeIn(tb testing.TB, dir, id string, limits sources.Limits) fs.FS {
	tb.Helper()
	disk, err := git.Open(dir, limits)
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, disk.Close()) })
	tree, err := disk.Tree(tb.Context(), id)
	require.NoError(tb, err)
	return tree
}

func commit(t *testing.T, repo *gittest.Repo, tree string) {
	t.Helper()
	repo.Git("update-ref", main, repo.Git("commit-tree", "-m", "x", tree))
}

func blob(repo *gittest.Repo, content string) string {
	return repo.GitInput(content, "hash-object", "-w", "--stdin")
}

func TestTreeIsAFileSystem(t *testing.T) {
	repo := gittest.NewRepo(t)
	repo.Write("fleetling.yaml", "kind: Fleet\n")
	repo.Write("addons/a/base/cm.yaml", strings.Repeat("kind: ConfigMap\n", 5000))
	repo.Write("addons/a.yaml", "sorts between a/ and a\n")
	repo.Write("addons/a-b", "and this")
	repo.Write("empty", "")
	repo.Write("A.yaml", "upper")
	repo.Write("a.yaml", "lower")
	repo.Write("ünïcode ☃", "x")
	repo.Write("run.sh", "#!/bin/sh\n")
	require.NoError(t, os.Chmod(filepath.Join(repo.Dir, "run.sh"), 0o755))
	require.NoError(t, os.Symlink("a/base", filepath.Join(repo.Dir, "addons/linked")))
	require.NoError(t, os.Symlink("../fleetling.yaml", filepath.Join(repo.Dir, "addons/up.yaml")))
	repo.Commit("first", nil)
	tree := treeOf(t, repo, sources.DefaultLimits())
	require.NoError(t, fstest.TestFS(tree, "fleetling.yaml", "addons/a/base/cm.yaml", "addons/a.yaml", "empty", "A.yaml", "a.yaml", "run.sh", "addons/linked", "addons/up.yaml"))
	for _, name := range []string{"fleetling.yaml", "addons/a/base/cm.yaml", "empty", "A.yaml", "a.yaml", "ünïcode ☃", "run.sh"} {
		f, err := tree.Open(name)
		require.NoError(t, err)
		want, err := os.ReadFile(filepath.Join(repo.Dir, name))
		require.NoError(t, err)
		assert.NoError(t, iotest.TestReader(f, want), name)
		assert.NoError(t, f.Close())
	}
	assert.Implements(t, (*fs.ReadDirFS)(nil), tree)
	assert.Implements(t, (*fs.ReadFileFS)(nil), tree)
	assert.Implements(t, (*fs.StatFS)(nil), tree)
}

func TestTreeListsByName(t *testing.T) {
	repo := gittest.NewRepo(t)
	repo.Write("d/f", "12345")
	repo.Write("d.txt", "x")
	repo.Write("d-x", "x")
	repo.Write("run", "x")
	require.NoError(t, os.Chmod(filepath.Join(repo.Dir, "run"), 0o755))
	require.NoError(t, os.Symlink("d/f", filepath.Join(repo.Dir, "l")))
	repo.Commit("first", nil)
	tree := treeOf(t, repo, sources.DefaultLimits())
	entries, err := fs.ReadDir(tree, ".")
	require.NoError(t, err)
	var got []string
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		got = append(got, fmt.Sprintf("%s %s %d", info.Mode(), e.Name(), info.Size()))
	}
	want := []string{"dr-xr-xr-x d 0", "-r--r--r-- d-x 1", "-r--r--r-- d.txt 1", "Lrwxrwxrwx l 3", "-r-xr-xr-x run 1"}
	assert.Empty(t, cmp.Diff(want, got), "-want +got")
	info, err := fs.Stat(tree, "l")
	require.NoError(t, err)
	assert.Equal(t, "l -r--r--r-- 5", fmt.Sprint(info.Name(), " ", info.Mode(), " ", info.Size()), "a link is followed")
}

func TestTreeGivesBytesAsInGit(t *testing.T) {
	repo := gittest.NewRepo(t)
	repo.Write(".gitattributes", "* text eol=crlf\n*.bin filter=lfs ident\n")
	content := "one\r\ntwo\n\xff\xfe\x00 $Id$\n"
	repo.Git("config", "core.autocrlf", "false")
	id := repo.GitInput(content, "hash-object", "-w", "--no-filters", "--stdin")
	repo.Git("add", ".gitattributes")
	repo.Git("update-index", "--add", "--cacheinfo", "100644,"+id+",a.bin")
	repo.Git("commit", "--quiet", "--message", "first")
	got, err := fs.ReadFile(treeOf(t, repo, sources.DefaultLimits()), "a.bin")
	require.NoError(t, err)
	assert.Equal(t, content, string(got))
}

func TestB27Links(t *testing.T) {
	repo := gittest.NewRepo(t)
	repo.Write("base/cm.yaml", "cm\n")
	repo.Write("a/b/c/file", "deep\n")
	repo.Write("link-target-with-text", "x")
	for name, target := range map[string]string{
		"inside":          "base",
		"file.yaml":       "base/cm.yaml",
		"a/b/up":          "../../base/./cm.yaml",
		"a/through":       "b//c/../up",
		"chain":           "inside/cm.yaml",
		"trailing":        "base/",
		"to-root":         "a/..",
		"absolute":        "/etc/hostname",
		"proc":            "/proc/self/environ",
		"out":             "../outside",
		"a/out":           "../../a/../../etc/passwd",
		"out-and-in":      "../" + filepath.Base(repo.Dir) + "/base/cm.yaml",
		"self":            "self",
		"ping":            "pong",
		"pong":            "ping",
		"a/loop":          "../a",
		"dangling":        "base/nothing",
		"through-file":    "base/cm.yaml/x",
		"to-git":          ".git/config",
		"to-broken":       "dangling",
		"a/dangling-here": "file",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(repo.Dir, name)), 0o755))
		require.NoError(t, os.Symlink(target, filepath.Join(repo.Dir, name)))
	}
	repo.Commit("first", nil)
	tree := treeOf(t, repo, sources.DefaultLimits())
	for name, want := range map[string]string{
		"file.yaml": "cm\n", "inside/cm.yaml": "cm\n", "a/b/up": "cm\n", "a/through": "cm\n", "chain": "cm\n",
		"trailing/cm.yaml": "cm\n", "to-root/base/cm.yaml": "cm\n", "a/loop/b/c/file": "deep\n", "a/loop/loop/loop/b/c/file": "deep\n",
	} {
		got, err := fs.ReadFile(tree, name)
		if assert.NoError(t, err, name) {
			assert.Equal(t, want, string(got), name)
		}
	}
	for name, words := range map[string]string{
		"absolute": "absolute path", "proc": "absolute path", "out": "leads out", "a/out": "leads out", "out-and-in": "leads out",
		"self": "circle", "ping": "circle", "dangling": "what is not there", "through-file": "what is not there", "to-git": "what is not there",
		"to-broken": "what is not there", "dangling/x": "what is not there", "out/x": "leads out", "a/dangling-here": "what is not there",
		"a/" + strings.Repeat("loop/", 45) + "b": "too many links",
	} {
		for _, err := range everyRead(tree, name) {
			require.Error(t, err, name)
			assert.ErrorContains(t, err, words, name)
			assert.ErrorContains(t, err, name)
			assert.NotErrorIs(t, err, fs.ErrNotExist, name)
			assert.ErrorIs(t, err, fs.ErrInvalid, name)
		}
	}
	for _, name := range []string{"inside/nothing", "to-root/nothing", "a/loop/nothing", "nothing", "base/cm.yaml/x", "file.yaml/x"} {
		for _, err := range everyRead(tree, name) {
			assert.ErrorIs(t, err, fs.ErrNotExist, name)
		}
	}
	_, err := fs.ReadDir(tree, ".")
	assert.NoError(t, err, "a broken link concerns whoever follows it")
	for name, want := range map[string]string{"absolute": "/etc/hostname", "inside": "base", "a/loop/loop": "../a"} {
		got, err := fs.ReadLink(tree, name)
		assert.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err = fs.ReadLink(tree, "base")
	assert.ErrorIs(t, err, fs.ErrInvalid)
}

// everyRead gives the errors of all ways to read a path.
func everyRead(tree fs.FS, name string) []error {
	_, open := tree.Open(name)
	_, stat := fs.Stat(tree, name)
	_, read := fs.ReadFile(tree, name)
	_, list := fs.ReadDir(tree, name)
	return []error{open, stat, read, list}
}

func TestB27SubmodulesAreAnErrorThatNamesThePath(t *testing.T) {
	repo := seeded(t)
	repo.Write(".gitmodules", "[submodule \"vendor\"]\n\tpath = vendor\n\turl = file:///etc\n")
	repo.Git("update-index", "--add", "--cacheinfo", "160000,"+repo.Head()+",addons/vendor")
	repo.Git("add", ".gitmodules")
	repo.Git("commit", "--quiet", "--message", "submodule")
	tree := treeOf(t, repo, sources.DefaultLimits())
	for _, name := range []string{"addons/vendor", "addons/vendor/kustomization.yaml"} {
		for _, err := range everyRead(tree, name) {
			assert.ErrorContains(t, err, "submodules are not supported")
			assert.ErrorContains(t, err, name)
			assert.NotErrorIs(t, err, fs.ErrNotExist)
			assert.ErrorIs(t, err, fs.ErrInvalid)
		}
	}
	entries, err := fs.ReadDir(tree, "addons")
	require.NoError(t, err)
	require.Len(t, entries, 2)
	assert.Equal(t, fs.ModeIrregular, entries[1].Type(), "neither a file nor an empty folder")
	_, err = entries[1].Info()
	assert.ErrorContains(t, err, "submodules are not supported")
	got, err := fs.ReadFile(tree, "addons/a/cm.yaml")
	require.NoError(t, err, "other paths are not concerned")
	assert.Equal(t, "kind: ConfigMap\n", string(got))
}

func TestB27LFSPointersAreAnErrorThatNamesThePath(t *testing.T) {
	repo := seeded(t)
	repo.Write("big.yaml", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
	repo.Write("about-lfs.md", "# version https://git-lfs.github.com/spec/v1\n")
	repo.Commit("lfs", nil)
	tree := treeOf(t, repo, sources.DefaultLimits())
	_, err := fs.ReadFile(tree, "big.yaml")
	assert.ErrorContains(t, err, "read big.yaml: is a Git LFS pointer")
	_, err = tree.Open("big.yaml")
	assert.ErrorContains(t, err, "open big.yaml: is a Git LFS pointer")
	assert.ErrorIs(t, err, fs.ErrInvalid)
	_, err = fs.ReadFile(tree, "about-lfs.md")
	assert.NoError(t, err)
}

func TestB27NamesAndModes(t *testing.T) {
	repo := seeded(t)
	id := blob(repo, "content\n")
	folder := repo.GitInput("100644 blob "+id+"\tinner", "mktree")
	for name, test := range map[string]struct{ line, path, words string }{ // words "" is readable
		"an ordinary name":        {"100644 blob " + id + "\tfine", "fine", ""},
		"an executable":           {"100755 blob " + id + "\tfine", "fine", ""},
		"a group-writable file":   {"100664 blob " + id + "\tfine", "fine", ""},
		"dots":                    {"100644 blob " + id + "\t...", "...", ""},
		"a dot file":              {"100644 blob " + id + "\t.gitignore", ".gitignore", ""},
		"a name of 255 bytes":     {"100644 blob " + id + "\t" + strings.Repeat("x", 255), strings.Repeat("x", 255), ""},
		"a name of 256 bytes":     {"100644 blob " + id + "\t" + strings.Repeat("x", 256), strings.Repeat("x", 256), "more than 255 bytes"},
		"a newline":               {"100644 blob " + id + "\ta\nb", "a\nb", "control character"},
		"an escape":               {"100644 blob " + id + "\ta\x1b[2Jb", "a\x1b[2Jb", "control character"},
		"a C1 control character":  {"100644 blob " + id + "\ta\u009bb", "a\u009bb", "control character"},
		"a backslash":             {"100644 blob " + id + "\ta\\..\\b", "a\\..\\b", "backslash"},
		"not UTF-8":               {"100644 blob " + id + "\ta\xff", "a\xff", "not UTF-8"},
		".git":                    {"040000 tree " + folder + "\t.git", ".git/inner", "not allowed"},
		".GIT":                    {"040000 tree " + folder + "\t.GIT", ".GIT/inner", "not allowed"},
		"a mode that git has not": {"100600 blob " + id + "\tfine", "fine", "mode"},
		"a mode of a device":      {"20644 blob " + id + "\tfine", "fine", "mode"},
	} {
		t.Run(name, func(t *testing.T) {
			commit(t, repo, rawTree(t, repo, test.line))
			tree := treeOf(t, repo, sources.DefaultLimits())
			_, listErr := fs.ReadDir(tree, ".")
			_, readErr := fs.ReadFile(tree, test.path)
			if test.words == "" {
				require.NoError(t, listErr)
				require.NoError(t, readErr)
				return
			}
			if test.words != "mode" { // that is said where the file is used
				require.ErrorContains(t, listErr, test.words)
				assert.ErrorIs(t, listErr, fs.ErrInvalid)
				assert.NotContains(t, listErr.Error(), "\x1b")
				assert.NotContains(t, listErr.Error(), "\n", "the name is quoted")
			}
			require.Error(t, readErr)
			assert.NotErrorIs(t, readErr, fs.ErrNotExist)
			assert.ErrorIs(t, readErr, fs.ErrInvalid)
			if fs.ValidPath(test.path) {
				assert.ErrorContains(t, readErr, test.words)
			}
		})
	}
}

// rawTree writes a tree object that mktree would not, from lines like mktree's.
func rawTree(t *testing.T, repo *gittest.Repo, lines ...string) string {
	t.Helper()
	var raw bytes.Buffer
	for _, line := range lines {
		head, name, _ := strings.Cut(line, "\t")
		fields := strings.Fields(head)
		raw.WriteString(treeLine(strings.TrimPrefix(fields[0], "0"), name, fields[2]))
	}
	return repo.GitInput(raw.String(), "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
}

func TestB27TwoEntriesOfOneNameAreAnError(t *testing.T) {
	repo := seeded(t)
	id := blob(repo, "content\n")
	folder := repo.GitInput("100644 blob "+id+"\tinner", "mktree")
	commit(t, repo, rawTree(t, repo, "100644 blob "+blob(repo, "other\n")+"\tname", "040000 tree "+folder+"\tname", "100644 blob "+id+"\tz"))
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	fetch(t, r)
	_, err := open(t, r.Dir).Tree(t.Context(), repo.Git("rev-parse", "main^{tree}"))
	assert.ErrorContains(t, err, `"name" is there twice`)
}

func TestTreeRefusesPathsThatAreNone(t *testing.T) {
	tree := treeOf(t, seeded(t), sources.DefaultLimits())
	for _, name := range []string{"", "/", "/fleetling.yaml", "../x", "addons/../fleetling.yaml", "addons/", "./addons", "addons//a"} {
		for _, err := range everyRead(tree, name) {
			assert.ErrorIs(t, err, fs.ErrInvalid, name)
		}
	}
	_, err := fs.ReadFile(tree, strings.Repeat("a/", 600)+"b")
	assert.Equal(t, sources.LimitExceeded, sources.ReasonOf(err), "%v", err)
	_, err = fs.ReadFile(tree, "addons")
	assert.ErrorContains(t, err, "is a folder")
	_, err = fs.ReadDir(tree, "fleetling.yaml")
	assert.ErrorContains(t, err, "is not a folder")
	f, err := tree.Open("addons")
	require.NoError(t, err)
	_, err = f.Read(make([]byte, 1))
	assert.Error(t, err)
}

func TestG13ATreeOfABillionPathsEndsAtALimit(t *testing.T) {
	repo := seeded(t)
	entry := "100644 blob " + blob(repo, "x")
	for range 9 {
		var lines []string
		for i := range 10 {
			lines = append(lines, fmt.Sprintf("%s\t%d", entry, i))
		}
		entry = "040000 tree " + repo.GitInput(strings.Join(lines, "\n")+"\n", "mktree")
	}
	commit(t, repo, strings.Fields(entry)[2])
	tree := treeOf(t, repo, sources.DefaultLimits())
	visited := 0
	err := fs.WalkDir(tree, ".", func(_ string, _ fs.DirEntry, err error) error {
		visited++
		return err
	})
	assert.Equal(t, sources.LimitExceeded, sources.ReasonOf(err), "%v", err)
	assert.Less(t, visited, 30_000)

	tree = treeOf(t, repo, sources.DefaultLimits())
	read := 0
	for i := range 1_000_000 {
		if _, err = fs.ReadFile(tree, strings.Join(strings.Split(fmt.Sprintf("%09d", i), ""), "/")); err != nil {
			break
		}
		read++
	}
	assert.Equal(t, 20_000, read)
	assert.Equal(t, sources.LimitExceeded, sources.ReasonOf(err), "%v", err)
}

func TestTreeLimits(t *testing.T) {
	repo := gittest.NewRepo(t)
	for i := range 5 {
		repo.Write(fmt.Sprintf("files/%d", i), strings.Repeat("x", 100))
	}
	repo.Write("deep/1/2/3/file", "x")
	repo.Write("big", strings.Repeat("x", 2000))
	repo.Commit("first", nil)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	fetch(t, r)
	id := repo.Git("rev-parse", "HEAD^{tree}")
	readFiles := func(tree fs.FS) error {
		var errs []error
		for i := range 5 {
			_, err := fs.ReadFile(tree, fmt.Sprintf("files/%d", i))
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
	for name, test := range map[string]struct {
		limit func(*sources.Limits)
		read  func(fs.FS) error
		words string // "" is within
	}{
		"as many files as allowed":   {func(l *sources.Limits) { l.Files = 5 }, readFiles, ""},
		"one file more":              {func(l *sources.Limits) { l.Files = 4 }, readFiles, "limits.files, 4"},
		"the same files again":       {func(l *sources.Limits) { l.Files = 5 }, func(f fs.FS) error { return errors.Join(readFiles(f), readFiles(f)) }, ""},
		"as many bytes as allowed":   {func(l *sources.Limits) { l.TreeBytes = 500 }, readFiles, ""},
		"one byte more":              {func(l *sources.Limits) { l.TreeBytes = 499 }, readFiles, "limits.treeBytes, 499"},
		"a file as big as allowed":   {func(l *sources.Limits) { l.ObjectBytes = 2000 }, reading("big"), ""},
		"a file that is bigger":      {func(l *sources.Limits) { l.ObjectBytes = 1999 }, reading("big"), "limits.objectBytes"},
		"as deep as allowed":         {func(l *sources.Limits) { l.Depth = 4 }, reading("deep/1/2/3/file"), ""},
		"deeper":                     {func(l *sources.Limits) { l.Depth = 3 }, reading("deep/1/2/3/file"), "limits.depth, 3"},
		"a listing of as many":       {func(l *sources.Limits) { l.Files = 6 }, listing("files"), ""},
		"a listing of more":          {func(l *sources.Limits) { l.Files = 5 }, listing("files"), "limits.files, 5"},
		"a listing of a file's size": {func(l *sources.Limits) { l.ObjectBytes = 1000 }, listing("."), ""},
	} {
		t.Run(name, func(t *testing.T) {
			limits := sources.DefaultLimits()
			test.limit(&limits)
			tree := treeIn(t, r.Dir, id, limits)
			err := test.read(tree)
			if test.words == "" {
				require.NoError(t, err)
				return
			}
			because(t, err, sources.LimitExceeded, test.words)
			assert.NotErrorIs(t, err, fs.ErrNotExist)
			assert.Error(t, test.read(tree), "it stays so")
		})
	}
	t.Run("a limit is no damage", func(t *testing.T) { assert.False(t, fetch(t, r).Fresh) })
}

func reading(name string) func(fs.FS) error {
	return func(f fs.FS) error { _, err := fs.ReadFile(f, name); return err }
}

func listing(name string) func(fs.FS) error {
	return func(f fs.FS) error { _, err := fs.ReadDir(f, name); return err }
}

func TestTreeIsReadByManyAtOnce(t *testing.T) {
	repo := gittest.NewRepo(t)
	for i := range 50 {
		repo.Write(fmt.Sprintf("d%d/file", i%7), strings.Repeat(fmt.Sprint(i), 1000))
	}
	repo.Commit("first", nil)
	tree := treeOf(t, repo, sources.DefaultLimits())
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			return fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() {
					return err
				}
				want, err := os.ReadFile(filepath.Join(repo.Dir, path))
				if err != nil {
					return err
				}
				got, err := fs.ReadFile(tree, path)
				if err == nil && !bytes.Equal(want, got) {
					err = fmt.Errorf("%s differs", path)
				}
				return err
			})
		})
	}
	assert.NoError(t, group.Wait())
}

func TestAnOpenFolderIsListedInPieces(t *testing.T) {
	repo := gittest.NewRepo(t)
	for i := range 5 {
		repo.Write(fmt.Sprint(i), "x")
	}
	repo.Commit("first", nil)
	f, err := treeOf(t, repo, sources.DefaultLimits()).Open(".")
	require.NoError(t, err)
	folder := f.(fs.ReadDirFile)
	var sizes []int
	for {
		entries, err := folder.ReadDir(2)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		sizes = append(sizes, len(entries))
	}
	assert.Equal(t, []int{2, 2, 1}, sizes)
}
