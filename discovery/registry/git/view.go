package git

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/fleetling/fleetling/discovery"
)

const (
	recordFile = "record"
	statusFile = "status"
	partFolder = "parts"

	// maxFile bounds a record, a status and a part, in bytes, maxFiles the parts
	// and maxBytes all of a member.
	maxFile  = 1 << 20
	maxFiles = 5000
	maxBytes = 32 << 20
)

// view is what we know of a member's branch.
type view struct {
	listed string // the commit that was looked at last
	good   string // the one that head is of: listed, or an older one; "" for none
	head   discovery.Head
	wrong  error // what is wrong with listed, nil for nothing
}

// formError is what is wrong with a branch's content: it stays so until the branch
// is at another commit.
type formError string

func (e formError) Error() string { return string(e) }

// view looks at a member's commit, unless it did already. The problem is why the
// view is not of that commit.
func (c *Carrier) view(ctx context.Context, member, commit string) (view, error) {
	c.mu.Lock()
	v := c.views[member]
	c.mu.Unlock()
	if v.listed == commit {
		return v, v.wrong
	}
	head, err := c.look(ctx, member, commit)
	if _, judged := errors.AsType[formError](err); err != nil && !judged {
		return v, err // it is looked at again
	}
	if err != nil {
		v.listed, v.wrong = commit, err
		return v, err
	}
	return view{listed: commit, good: commit, head: head}, nil
}

// look reads record and status of a commit, and no part.
func (c *Carrier) look(ctx context.Context, member, commit string) (discovery.Head, error) {
	head := discovery.Head{Member: member}
	err := c.refs.Files(ctx, commit, func(files fs.FS) error {
		entries, err := fs.ReadDir(files, ".")
		if err != nil {
			return judge(err)
		}
		for _, entry := range entries {
			switch name := entry.Name(); {
			case name == recordFile:
				head.Record, err = digestIn(files, entry)
			case name == statusFile:
				head.Status, err = digestIn(files, entry)
			case name == partFolder && entry.IsDir():
				err = checkParts(files)
			default:
				err = formError(fmt.Sprintf("%.60q: no such file belongs there", name))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return discovery.Head{}, fmt.Errorf("branch %s%s at %.12s: %w", Prefix, member, commit, err)
	}
	return head, nil
}

// judge makes a verdict of what was committed and can't be used.
func judge(err error) error {
	if errors.Is(err, fs.ErrInvalid) {
		return formError(err.Error())
	}
	return err
}

func digestIn(files fs.FS, entry fs.DirEntry) (discovery.Digest, error) {
	if _, err := sizeOf(entry); err != nil {
		return "", err
	}
	data, err := fs.ReadFile(files, entry.Name())
	if err != nil {
		return "", judge(err)
	}
	return discovery.DigestOf(data), nil
}

// checkParts bounds the parts. Their bytes are compared when they are read.
func checkParts(files fs.FS) error {
	entries, err := fs.ReadDir(files, partFolder)
	if err != nil {
		return judge(err)
	}
	if len(entries) > maxFiles {
		return formError(fmt.Sprintf("%d parts, more than %d are not read", len(entries), maxFiles))
	}
	var all int64
	for _, entry := range entries {
		if !isHex(entry.Name()) {
			return formError(fmt.Sprintf("parts/%.80q: the name of a part is 64 lower-case hexadecimal digits", entry.Name()))
		}
		size, err := sizeOf(entry)
		if err != nil {
			return err
		}
		if all += size; all > maxBytes {
			return formError(fmt.Sprintf("the parts hold more than %d bytes", maxBytes))
		}
	}
	return nil
}

func sizeOf(entry fs.DirEntry) (int64, error) {
	if !entry.Type().IsRegular() {
		return 0, formError(fmt.Sprintf("%q: is not a file", entry.Name()))
	}
	info, err := entry.Info()
	if err != nil {
		return 0, judge(err)
	}
	if info.Size() > maxFile {
		return 0, formError(fmt.Sprintf("%q: has %d bytes, more than %d are not read", entry.Name(), info.Size(), maxFile))
	}
	return info.Size(), nil
}

// filesOf gives the files of what a member has, within the bounds of whoever reads
// them.
func filesOf(own discovery.Own) (map[string][]byte, error) {
	files := map[string][]byte{}
	if own.Record != nil {
		files[recordFile] = own.Record
	}
	if own.Status != nil {
		files[statusFile] = own.Status
	}
	for digest, part := range own.Parts {
		hex, ok := hexOf(digest)
		if !ok || discovery.DigestOf(part) != digest {
			return nil, fmt.Errorf("part %.80q: it is not the digest of its bytes", digest)
		}
		files[partFolder+"/"+hex] = part
	}
	all := 0
	for path, data := range files {
		if len(data) > maxFile {
			return nil, fmt.Errorf("%s: has %d bytes, more than %d are not read by others", path, len(data), maxFile)
		}
		all += len(data)
	}
	if len(own.Parts) > maxFiles || all > maxBytes {
		return nil, fmt.Errorf("%d parts, %d bytes: more than %d parts or %d bytes are not read by others: export less", len(own.Parts), all, maxFiles, maxBytes)
	}
	return files, nil
}

func headOf(member string, own discovery.Own) discovery.Head {
	head := discovery.Head{Member: member}
	if own.Record != nil {
		head.Record = discovery.DigestOf(own.Record)
	}
	if own.Status != nil {
		head.Status = discovery.DigestOf(own.Status)
	}
	return head
}

// pathOf says which file should hold a digest.
func pathOf(head discovery.Head, digest discovery.Digest) (string, bool) {
	hex, ok := hexOf(digest)
	switch {
	case !ok:
		return "", false
	case digest == head.Record:
		return recordFile, true
	case digest == head.Status:
		return statusFile, true
	default:
		return partFolder + "/" + hex, true
	}
}

func hexOf(digest discovery.Digest) (string, bool) {
	text, ok := strings.CutPrefix(string(digest), "sha256:")
	return text, ok && isHex(text)
}

func isHex(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == 32 && hex.EncodeToString(raw) == text
}
