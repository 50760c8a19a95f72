package fleet

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fleetling/fleetling/sources"
)

func validGlob(glob string) bool {
	if !fs.ValidPath(glob) || glob == "." || strings.Contains(glob, "**") {
		return false
	}
	for segment := range strings.SplitSeq(glob, "/") {
		if _, err := path.Match(segment, ""); err != nil {
			return false
		}
	}
	return true
}

// expandGlob gives the files that match, sorted. Unlike fs.Glob it tells of a
// folder that can't be read.
func expandGlob(fsys fs.FS, glob string) ([]string, *sources.Error) {
	matches := []string{"."}
	segments := strings.Split(glob, "/")
	for at, segment := range segments {
		folders := matches
		matches = nil
		for _, folder := range folders {
			found, problem := matchIn(fsys, folder, segment, at < len(segments)-1)
			if problem != nil {
				return nil, problem
			}
			matches = append(matches, found...)
		}
	}
	slices.Sort(matches)
	return matches, nil
}

// matchIn gives the folders, or the files, in folder whose name matches.
func matchIn(fsys fs.FS, folder, pattern string, folders bool) ([]string, *sources.Error) {
	entries, err := fs.ReadDir(fsys, folder)
	if err != nil {
		return nil, unreadable(sources.InvalidFleetFile, err)
	}
	var found []string
	for _, entry := range entries {
		if matched, err := path.Match(pattern, entry.Name()); err != nil {
			return nil, unreadable(sources.InvalidFleetFile, err)
		} else if !matched {
			continue
		}
		name := path.Join(folder, entry.Name())
		info, err := fs.Stat(fsys, name) // a link counts as what it leads to
		if err != nil {
			return nil, unreadable(sources.InvalidFleetFile, err)
		}
		if info.IsDir() == folders {
			found = append(found, name)
		}
	}
	return found, nil
}
