package git_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources/git"
)

// weight is the bytes of all files below dir.
func weight(b *testing.B, dir string) (bytes int64) {
	b.Helper()
	require.NoError(b, filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		bytes += info.Size()
		return err
	}))
	return bytes
}

// BenchmarkRefsFetchOfNothingNew is an idle poll of 50 members, over http, with
// the time of `git http-backend` in it.
func BenchmarkRefsFetchOfNothingNew(b *testing.B) {
	_, server := pushable(b)
	writer := branches(b, request(b, server.URL))
	for i := range 50 {
		push(b, writer, fmt.Sprintf("%sm%02d", members, i), parts(0), 1)
	}
	relay := counting(b, server.URL)
	reader := branches(b, request(b, relay.url))
	fetchAll(b, reader)
	relay.take()
	for b.Loop() {
		fetchAll(b, reader)
	}
	sent, received := relay.take()
	b.ReportMetric(float64(sent)/float64(b.N), "sentB/op")
	b.ReportMetric(float64(received)/float64(b.N), "receivedB/op")
}

// BenchmarkRefsPushAndFetchOfOnePart changes one part of 50 of 3 KB each, and says
// what the repositories hold in the end, each per change.
func BenchmarkRefsPushAndFetchOfOnePart(b *testing.B) {
	repo, server := pushable(b)
	up, down := counting(b, server.URL), counting(b, server.URL)
	writer := branches(b, request(b, up.url))
	dir := filepath.Join(b.TempDir(), "registry")
	reader := configured(b, git.RefsConfig{Remote: request(b, down.url).Remote, Prefix: members, Dir: dir, Max: 10})
	all := parts(50)
	push(b, writer, alice, all, 0)
	fetchAll(b, reader)
	up.take()
	down.take()
	theirs, ours := weight(b, repo.Dir), weight(b, dir)
	i := 0
	for b.Loop() {
		i++
		all["record"] = fmt.Appendf(nil, "record %d", i)
		all["parts/007"] = noise(uint64(1000+i), 3000)
		push(b, writer, alice, all, int64(i))
		fetchAll(b, reader)
	}
	sent, _ := up.take()
	_, received := down.take()
	b.ReportMetric(float64(sent)/float64(i), "sentB/op")
	b.ReportMetric(float64(received)/float64(i), "receivedB/op")
	b.ReportMetric(float64(weight(b, repo.Dir)-theirs)/1e6, "serverMB")
	b.ReportMetric(float64(weight(b, dir)-ours)/1e6, "clientMB")
	repo.Git("reflog", "expire", "--expire=now", "--all") // which a bare repository has not
	repo.Git("gc", "--quiet", "--prune=now")
	b.ReportMetric(float64(weight(b, repo.Dir)-theirs)/1e6, "serverMB-after-gc")
}
