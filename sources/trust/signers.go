package trust

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"golang.org/x/crypto/ssh"

	"github.com/fleetling/fleetling/sources"
)

const (
	// maxKeyFile is what one file of a signers folder may hold, in bytes.
	maxKeyFile = 64 << 10
	// maxKeyFiles is how many files such a folder may hold.
	maxKeyFiles = 256
	// maxName is how long the name of a signer may be, in bytes.
	maxName = 64
)

// Signer is somebody who may sign.
type Signer struct {
	// Name is the name of the key's file without its extension.
	Name string
	// Fingerprint is "SHA256:..." of an SSH key, or 40 or 64 upper-case
	// hexadecimal digits of an OpenPGP primary key.
	Fingerprint string
}

// String gives "name (fingerprint)".
func (s Signer) String() string {
	if s.Name == "" {
		return s.Fingerprint
	}
	return s.Name + " (" + s.Fingerprint + ")"
}

// Signers are the keys of one signers folder. The zero value holds none. They
// are read-only: use them from any number of goroutines.
type Signers struct {
	byID map[string]*key
}

// Empty says whether no key is there that could ever sign: none, or weak ones
// only.
func (s Signers) Empty() bool {
	for _, k := range s.byID {
		if k.weak == "" {
			return false
		}
	}
	return true
}

// find gives the key that a signature names, or nil.
func (s Signers) find(id string) *key { return s.byID[id] }

// key is one key that may sign: an SSH key, or a primary key or signing subkey
// of an OpenPGP key.
type key struct {
	Signer
	// id is the fingerprint of this very key: for an OpenPGP subkey not the
	// signer's.
	id string
	// weak says why its signatures prove nothing, or is empty.
	weak string
	// revoked says that the key file itself revokes it.
	revoked bool
	// from and until bound when it signs. Zero is no bound.
	from, until time.Time

	ssh ssh.PublicKey
	pgp *packet.PublicKey
}

// validAt says whether the key may sign at t.
func (k *key) validAt(t time.Time) bool {
	return !t.Before(k.from) && !k.expiredAt(t)
}

func (k *key) expiredAt(t time.Time) bool {
	return !k.until.IsZero() && !t.Before(k.until)
}

// narrow bounds when the key signs. Zero is no bound.
func (k *key) narrow(from, until time.Time) {
	if from.After(k.from) {
		k.from = from
	}
	if !until.IsZero() && (k.until.IsZero() || until.Before(k.until)) {
		k.until = until
	}
}

// ReadSigners reads the files of the folder dir: "signers" in a tree, "." for
// the configuration's own folder. NAME.pub is one OpenSSH public key or one
// line in the format of ssh-keygen's ALLOWED SIGNERS, NAME.asc one armored
// OpenPGP key.
//
// A file that is no such key is a problem and is left out; who calls reports
// problems. No folder at all is no keys. The error is for what can't be read
// and, with the reason LimitExceeded, for more than 256 files.
func ReadSigners(fsys fs.FS, dir string) (Signers, []*sources.Error, error) {
	files, problems, err := readKeyFiles(fsys, dir)
	if err != nil {
		return Signers{}, nil, err
	}
	s, more := parseKeyFiles(dir, files)
	problems = append(problems, more...)
	slices.SortStableFunc(problems, func(a, b *sources.Error) int { return strings.Compare(a.File, b.File) })
	return s, problems, nil
}

// keyFile is the name and the content of one file.
type keyFile struct{ name, text string }

func readKeyFiles(fsys fs.FS, dir string) (files []keyFile, problems []*sources.Error, err error) {
	entries, wrong, err := listKeyFiles(fsys, dir)
	if err != nil {
		return nil, nil, err
	}
	if wrong != "" {
		return nil, []*sources.Error{problem(sources.UnknownKey, dir, "", wrong)}, nil
	}
	for _, entry := range entries {
		text, wrong, err := readKeyFile(fsys, dir, entry)
		switch {
		case err != nil:
			return nil, nil, err
		case wrong != "":
			problems = append(problems, problem(sources.UnknownKey, dir, entry.Name(), wrong))
		default:
			files = append(files, keyFile{name: entry.Name(), text: text})
		}
	}
	return files, problems, nil
}

// listKeyFiles lists the folder, or says what is wrong with it.
func listKeyFiles(fsys fs.FS, dir string) (entries []fs.DirEntry, wrong string, err error) {
	info, err := fs.Stat(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err == nil && info.IsDir() {
		entries, err = fs.ReadDir(fsys, dir)
	}
	if errors.Is(err, fs.ErrInvalid) || (err == nil && !info.IsDir()) {
		return nil, "it is not a folder that can be listed: keys are files in it, with plain names", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", dir, err)
	}
	// A mounted ConfigMap keeps its versions in names with a dot.
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") })
	if len(entries) > maxKeyFiles {
		return nil, "", &sources.Error{
			Reason: sources.LimitExceeded, File: dir,
			Err: fmt.Errorf("it holds %d files, more than %d: remove some", len(entries), maxKeyFiles),
		}
	}
	return entries, "", nil
}

// readKeyFile gives the file's text, or what is wrong with it. A failure to
// read is an error: a key that can't be read just now is not a key that is not
// there.
func readKeyFile(fsys fs.FS, dir string, entry fs.DirEntry) (text, wrong string, err error) {
	name := entry.Name()
	if ext := path.Ext(name); ext != ".pub" && ext != ".asc" {
		return "", "a key is in NAME.pub (SSH) or NAME.asc (OpenPGP): rename it, or remove it", nil
	}
	if !isName(strings.TrimSuffix(name, path.Ext(name))) {
		return "", "a signer's name is letters, digits and . _ @ + - and at most 64 long: rename it", nil
	}
	data, err := readBounded(fsys, path.Join(dir, name))
	switch {
	case isContent(err):
		return "", "it is not a regular file, or too large: " + err.Error(), nil
	case err != nil:
		return "", "", fmt.Errorf("read %s: %w", path.Join(dir, name), err)
	case len(data) > maxKeyFile:
		return "", fmt.Sprintf("it holds more than %d bytes: export the key in its minimal form", maxKeyFile), nil
	default:
		return string(data), "", nil
	}
}

// readBounded reads a regular file, up to one byte more than it may have.
func readBounded(fsys fs.FS, name string) ([]byte, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	return io.ReadAll(io.LimitReader(file, maxKeyFile+1))
}

// isContent says whether a file can't be read because of what the tree holds (a
// dangling link, a submodule, a huge object), and not because reading went wrong.
func isContent(err error) bool {
	_, verdict := errors.AsType[*sources.Error](err)
	return verdict || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid)
}

func isName(name string) bool {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@+-"
	return name != "" && len(name) <= maxName && strings.Trim(name, plain) == ""
}

// parseKeyFiles makes the set. Where two files hold the same key, the first
// name has it, as narrow as either says.
func parseKeyFiles(dir string, files []keyFile) (Signers, []*sources.Error) {
	s := Signers{byID: map[string]*key{}}
	var problems []*sources.Error
	for _, file := range files {
		keys, err := parseKeyFile(file)
		if err != nil {
			problems = append(problems, problem(sources.UnknownKey, dir, file.name, err.Error()))
			continue
		}
		same, weak := s.addAll(keys)
		if same != nil {
			problems = append(problems, problem(sources.UnknownKey, dir, file.name,
				fmt.Sprintf("its key is that of %s: remove one of the two files", same.Name)))
		}
		if weak != nil {
			problems = append(problems, problem(sources.WeakAlgorithm, dir, file.name,
				fmt.Sprintf("nothing that its key %s signs is taken: %s: replace it by ed25519, NIST ECDSA, or RSA of %d bits or more", weak.id, weak.weak, minRSA)))
		}
	}
	return s, problems
}

// addAll adds the keys of one file, and gives the first that was there already
// and the first that is weak, if any.
func (s Signers) addAll(keys []*key) (same, weak *key) {
	for _, k := range keys {
		same = cmp.Or(same, s.add(k))
		if weak == nil && k.weak != "" {
			weak = k
		}
	}
	return same, weak
}

// add gives the key that was there under one of the ids of k, if any.
func (s Signers) add(k *key) *key {
	ids := []string{k.id}
	if k.pgp != nil {
		ids = append(ids, keyID(k.id))
	}
	for _, id := range ids {
		if other := s.byID[id]; other != nil {
			other.narrow(k.from, k.until)
			other.revoked = other.revoked || k.revoked
			return other
		}
	}
	for _, id := range ids {
		s.byID[id] = k
	}
	return nil
}

func parseKeyFile(file keyFile) (keys []*key, err error) {
	ext := path.Ext(file.name)
	err = guard(func() error {
		if ext == ".pub" {
			keys, err = parseSSHKey(file.text)
		} else {
			keys, err = parsePGPKey(file.text)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		k.Name = strings.TrimSuffix(file.name, ext)
	}
	return keys, nil
}

// problem is about a file that gives no good key. The reason is the one that a
// signature by it gets.
func problem(reason sources.Reason, dir, name, text string) *sources.Error {
	file := path.Join(dir, name)
	if strings.ContainsFunc(file, isControl) {
		file = fmt.Sprintf("%q", file)
	}
	return &sources.Error{Reason: reason, File: file, Err: errors.New(text)}
}
