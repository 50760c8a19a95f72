package git_test

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/gittest"
)

// thousand is a repository of 1000 files in 10 folders.
func thousand(b *testing.B) *gittest.Repo {
	b.Helper()
	repo := gittest.NewRepo(b)
	for i := range 1000 {
		repo.Write(fmt.Sprintf("addons/%d/%d.yaml", i%10, i), fmt.Sprintf("kind: ConfigMap\nmetadata: {name: cm-%d}\n", i))
	}
	repo.Commit("first", nil)
	return repo
}

// BenchmarkFetchUnchanged is a poll: git http-backend is most of it.
func BenchmarkFetchUnchanged(b *testing.B) {
	repo := thousand(b)
	r := request(b, gittest.ServeHTTP(b, repo.Dir, gittest.HTTPOptions{}).URL)
	r.Have = fetch(b, r).Head
	var bytes int64
	for b.Loop() {
		bytes += fetch(b, r).Received
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "wire-B/op")
}

func BenchmarkFetchOneCommit(b *testing.B) {
	repo := thousand(b)
	r := request(b, gittest.ServeHTTP(b, repo.Dir, gittest.HTTPOptions{}).URL)
	r.Have = fetch(b, r).Head
	var bytes int64
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		repo.Write("addons/1/1.yaml", fmt.Sprintf("kind: ConfigMap\ndata: {n: %d}\n", n))
		repo.Commit("next", nil)
		b.StartTimer()
		result := fetch(b, r)
		r.Have = result.Head
		bytes += result.Received
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "wire-B/op")
}

func BenchmarkCloneOfAThousandCommits(b *testing.B) {
	repo := thousand(b)
	grow(b, repo, "history", 1000)
	url := gittest.ServeHTTP(b, repo.Dir, gittest.HTTPOptions{}).URL
	for b.Loop() {
		require.True(b, fetch(b, request(b, url)).Fresh)
	}
}

func BenchmarkReadOfAThousandFiles(b *testing.B) {
	repo := thousand(b)
	r := request(b, gittest.ServeHTTP(b, repo.Dir, gittest.HTTPOptions{}).URL)
	fetch(b, r)
	id := repo.Git("rev-parse", "HEAD^{tree}")
	for b.Loop() {
		disk, err := git.Open(r.Dir, sources.DefaultLimits())
		require.NoError(b, err)
		tree, err := disk.Tree(b.Context(), id)
		require.NoError(b, err)
		files := 0
		require.NoError(b, fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			files++
			_, err = fs.ReadFile(tree, path)
			return err
		}))
		require.Equal(b, 1000, files)
		require.NoError(b, disk.Close())
	}
}
