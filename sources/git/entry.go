package git

import (
	"bytes"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
)

// kind is what a tree's entry is.
type kind int

const (
	kindFile kind = iota
	kindProgram
	kindFolder
	kindLink
	kindSubmodule
	kindOdd // a mode that git does not write
)

// entry is one line of a tree object.
type entry struct {
	kind kind
	name string
	id   plumbing.Hash
}

// parseTree reads a tree object: "MODE NAME\0" and 20 bytes of id, again and
// again. Names and modes are not judged here, but where they are used: what is
// strange in one file, or in an old commit, concerns no other.
func parseTree(raw []byte) ([]entry, error) {
	const idSize = len(plumbing.Hash{})
	var entries []entry
	for len(raw) > 0 {
		head, rest, found := bytes.Cut(raw, []byte{0})
		mode, name, ok := strings.Cut(string(head), " ")
		if !found || !ok || len(rest) < idSize {
			return nil, fmt.Errorf("%w: entry %d is cut off", errGarbled, len(entries))
		}
		entries = append(entries, entry{kind: kindOf(mode), name: name, id: plumbing.Hash(rest[:idSize])})
		raw = rest[idSize:]
	}
	return entries, nil
}

func kindOf(mode string) kind {
	bits, err := strconv.ParseUint(mode, 8, 32)
	if err != nil {
		return kindOdd
	}
	switch bits {
	case 0o100644, 0o100664: // the second is what git wrote in its first months
		return kindFile
	case 0o100755:
		return kindProgram
	case 0o040000:
		return kindFolder
	case 0o120000:
		return kindLink
	case 0o160000:
		return kindSubmodule
	}
	return kindOdd
}

// contentError is what makes a path unusable although it is there: it is about
// what was committed, and not about reading it. errors.Is knows it as
// fs.ErrInvalid.
type contentError string

func (e contentError) Error() string { return string(e) }

// Is is for errors.Is.
func (e contentError) Is(target error) bool { return target == fs.ErrInvalid }

// checkName keeps out names that a file system, a terminal or git itself could
// take for something else. Two names that differ in case only are fine.
func checkName(name string) error {
	switch {
	case !utf8.ValidString(name):
		return contentError("the name is not UTF-8")
	case len(name) > 255:
		return contentError("the name has more than 255 bytes")
	case strings.ContainsFunc(name, unicode.IsControl), strings.Contains(name, `\`):
		return contentError("the name holds a control character or a backslash")
	case name == "", name == ".", name == "..", strings.Contains(name, "/"), strings.EqualFold(name, ".git"):
		return contentError("the name is not allowed in a repository")
	}
	return nil
}

// mode is what fs.FS shows.
func (k kind) mode() fs.FileMode {
	switch k {
	case kindProgram:
		return 0o555
	case kindFolder:
		return fs.ModeDir | 0o555
	case kindLink:
		return fs.ModeSymlink | 0o777
	case kindSubmodule, kindOdd:
		return fs.ModeIrregular
	default:
		return 0o444
	}
}
