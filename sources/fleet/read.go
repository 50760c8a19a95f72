package fleet

import (
	"cmp"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetling/fleetling/sources"
)

const (
	fleetFile     = "fleetling.yaml"
	maxFleetBytes = 1 << 20
	maxGlobs      = 64
)

// Read reads fleetling.yaml at the root of fsys and the entries of the files
// that clusters.files names there. Entries are read only when nothing is wrong
// with fleetling.yaml.
func Read(fsys fs.FS) (Fleet, error) {
	found := &problems{}
	d := decoder{place: place{file: fleetFile}, problems: found, reason: sources.InvalidFleetFile}
	data, problem := readFile(fsys, fleetFile, maxFleetBytes)
	if problem != nil {
		found.add(d.place, problem)
		return Fleet{}, found.err()
	}
	f, globs := decodeFleet(d, data)
	if err := found.err(); err != nil {
		return Fleet{}, err
	}
	f.Clusters = readEntries(fsys, globs, f.Labels, found)
	if err := found.err(); err != nil {
		return Fleet{}, err
	}
	return f, nil
}

// readFile reads a regular file of at most most bytes.
func readFile(fsys fs.FS, name string, most int) ([]byte, *sources.Error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, unreadable(sources.InvalidFleetFile, err)
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil {
		return nil, unreadable(sources.InvalidFleetFile, err)
	} else if !info.Mode().IsRegular() {
		return nil, fault(sources.InvalidFleetFile, "not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	if err != nil {
		return nil, unreadable(sources.InvalidFleetFile, err)
	}
	if len(data) > most {
		return nil, fault(sources.LimitExceeded, "the file has more than %d bytes", most)
	}
	return data, nil
}

// unreadable keeps the reason that the tree gives, if it gives one.
func unreadable(otherwise sources.Reason, err error) *sources.Error {
	return fault(cmp.Or(sources.ReasonOf(err), otherwise), "can't be read: %w", err)
}

func decodeFleet(d decoder, data []byte) (Fleet, []Text) {
	doc, ok := d.one(data)
	if !ok {
		return Fleet{}, nil
	}
	f := Fleet{Unlisted: UnlistedIdentity, Labels: map[string]LabelRule{}}
	var version, kind Text
	var globs []Text
	d.object(doc, fields{
		"apiVersion": {required: true, read: d.into(&version)},
		"kind":       {required: true, read: d.into(&kind)},
		"clusterSet": {required: true, read: func(at item) {
			f.clusterSetLine = at.line
			d.dnsLabel(&f.ClusterSet, validation.DNS1123LabelMaxLength)(at)
		}},
		"clusters": {read: func(at item) {
			f.clustersLine = at.line
			f.Unlisted, globs = decodeClusters(d, at)
		}},
		"labels":      {read: func(at item) { decodeLabelRules(d, at, f.Labels) }},
		"addons":      {required: true, read: func(at item) { f.AddOns = decodeAddOns(d, at) }},
		"acknowledge": {read: func(at item) { f.Acknowledge = decodeAcknowledge(d, at) }},
		"registry":    {read: func(at item) { f.Registry = decodeRegistry(d, at) }},
		"exports":     {read: func(at item) { f.Exports = decodeExports(d, at) }},
	})
	check(d, &f)
	d.version(version, kind, "Fleet")
	return f, globs
}

func decodeClusters(d decoder, at item) (Unlisted, []Text) {
	unlisted := Text{Value: string(UnlistedIdentity)}
	var globs []Text
	d.object(at, fields{
		"files":    {read: func(at item) { globs = d.texts(at, maxGlobs, d.reason) }},
		"unlisted": {read: d.into(&unlisted)},
	})
	if u := Unlisted(unlisted.Value); u != UnlistedIdentity && u != UnlistedDeny {
		d.report(unlisted.Line, d.reason, "unlisted must be %[2]s or %[3]s, not %.80[1]q", u, UnlistedIdentity, UnlistedDeny)
	}
	for _, glob := range globs {
		if !validGlob(glob.Value) {
			d.report(glob.Line, d.reason,
				"files: %s must be a pattern of files below the root, such as clusters/*.yaml: relative, without .. and **", shown(glob.Value))
		}
	}
	return Unlisted(unlisted.Value), globs
}
