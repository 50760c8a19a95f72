package fleet

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/fleetling/fleetling/sources"
)

const (
	maxEntries    = 5000
	maxEntryBytes = 1 << 20
	// maxEntriesBytes bounds all files of entries together.
	maxEntriesBytes = 32 << 20

	capiGroup   = "cluster.x-k8s.io"
	clusterKind = "Cluster"
)

// entries reads cluster entries, file after file.
type entries struct {
	rules    map[string]LabelRule
	clusters map[string]Cluster
	problems *problems
}

func readEntries(fsys fs.FS, globs []Text, rules map[string]LabelRule, found *problems) []Cluster {
	e := entries{rules: rules, clusters: map[string]Cluster{}, problems: found}
	size := 0
	for _, file := range entryFiles(fsys, globs, found) {
		data, problem := readFile(fsys, file, maxEntryBytes)
		if problem != nil {
			found.add(place{file: file}, problem)
			continue
		}
		if size += len(data); size > maxEntriesBytes {
			found.add(place{file: file}, fault(sources.LimitExceeded, "the files of cluster entries have more than %d bytes together", maxEntriesBytes))
			return nil
		}
		e.file(file, data)
		if len(e.clusters) > maxEntries {
			found.add(place{file: file}, fault(sources.LimitExceeded, "more than %d cluster entries", maxEntries))
			return nil
		}
	}
	clusters := make([]Cluster, 0, len(e.clusters))
	for _, cluster := range e.clusters {
		clusters = append(clusters, cluster)
	}
	slices.SortFunc(clusters, func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) })
	return clusters
}

// entryFiles gives each file once, sorted.
func entryFiles(fsys fs.FS, globs []Text, found *problems) []string {
	var files []string
	for _, glob := range globs {
		at := place{file: fleetFile, line: glob.Line}
		matches, problem := expandGlob(fsys, glob.Value)
		switch {
		case problem != nil:
			found.add(at, problem)
		case len(matches) == 0:
			found.add(at, fault(sources.PathNotFound, "clusters.files: %.200q matches no file", glob.Value))
		}
		files = append(files, matches...)
	}
	slices.Sort(files)
	files = slices.Compact(files)
	if len(files) > maxEntries {
		found.add(place{file: fleetFile}, fault(sources.LimitExceeded, "clusters.files matches %d files: at most %d are read", len(files), maxEntries))
		return nil
	}
	return files
}

func (e entries) file(file string, data []byte) {
	d := decoder{place: place{file: file}, problems: e.problems, reason: sources.InvalidFleetFile, lenient: true}
	docs, err := documents(data)
	if err != nil {
		d.unparsable(err)
	}
	for _, doc := range docs {
		e.document(d, doc)
	}
}

// document reads as much as tells whose entry it is; Cluster reads the rest.
func (e entries) document(d decoder, doc item) {
	var version, kind, name Text
	d.object(doc, fields{
		"apiVersion": {required: true, read: d.into(&version)},
		"kind":       {required: true, read: d.into(&kind)},
	})
	if !isEntry(d, version, kind) {
		return
	}
	d.object(doc, fields{"metadata": {required: true, read: func(at item) {
		d.object(at, fields{"name": {required: true, read: d.into(&name)}})
	}}})
	if name.Value == "" {
		return // reported
	}
	cluster := Cluster{Name: name.Value, File: d.file, Line: doc.line}
	if first, twice := e.clusters[cluster.Name]; twice {
		e.problems.add(cluster.place(), fault(sources.DuplicateCluster, "%s:%d has an entry of this name too: take one of them away", first.File, first.Line))
		return
	}
	if slices.Contains([]string{capiGroup + "/v1beta1", capiGroup + "/v1beta2"}, version.Value) {
		cluster.decodeBody(doc, e.rules)
	} else {
		cluster.Problem = unknownVersion(cluster.place().on(version.Line), version.Value)
	}
	e.clusters[cluster.Name] = cluster
}

// isEntry tells entries from objects of other kinds, and reports what may be
// one in disguise.
func isEntry(d decoder, version, kind Text) bool {
	group, _, _ := strings.Cut(version.Value, "/")
	switch {
	case kind.Value == "List" || group == capiGroup && kind.Value == clusterKind+"List":
		d.report(kind.Line, d.reason, "a %s may hide a cluster entry: write its items as documents of their own", kind.Value)
	case group != capiGroup || !strings.EqualFold(kind.Value, clusterKind):
	case kind.Value != clusterKind:
		d.report(kind.Line, d.reason, "kind is %q: write %s", kind.Value, clusterKind)
	default:
		return true
	}
	return false
}

func unknownVersion(at place, version string) error {
	found := &problems{}
	found.add(at, fault(sources.InvalidFleetFile, "apiVersion %.80q is not known to this agent, v1beta1 and v1beta2 are: write one of them, or upgrade the agent first", version))
	return found.err()
}
