package trust

import (
	"bytes"
	"crypto/sha1" // git's names of objects; no verdict on a signature rests on it
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fleetling/fleetling/sources"
)

const (
	// maxCommit is what one commit object may hold, in bytes.
	maxCommit = 1 << 20
	// maxParents is how many parents a commit may have.
	maxParents = 64
)

// Commit is a strictly parsed commit object.
type Commit struct {
	// ID is the object's name: 40 (SHA-1) or 64 (SHA-256) hexadecimal digits.
	ID string
	// Tree is the id of its tree, Parents those of its parents.
	Tree    string
	Parents []string
	// CommittedAt is the committer's time. Who commits chooses it.
	CommittedAt time.Time
	// Payload is what the signature covers: the stored bytes without the
	// signature's header. PayloadHash is its SHA-256 in hexadecimal: equal for
	// two commits that differ in nothing but the wrapping of their signature.
	Payload     []byte
	PayloadHash string

	// signature is the text of the signature, and claim what it says of
	// itself. No text: the commit is not signed.
	signature string
	claim     claim
	// misshapen says why the signature's header is not what a tool writes.
	misshapen error
}

// ParseCommit reads the commit object id from its stored bytes. The error is a
// *sources.Error: MalformedCommit where git and we could read it differently or
// where its bytes are not those that id names, NonCanonicalSignature where its
// signature is not in the form that the known tools write, LimitExceeded above
// 1 MiB.
func ParseCommit(id string, raw []byte) (Commit, error) {
	c, err := parseObject(id, raw)
	if err == nil {
		err = c.readClaim()
	}
	if err != nil {
		return Commit{}, err
	}
	return c, nil
}

// readClaim judges the form of the signature. parseObject leaves that open:
// for the shape of history it doesn't matter how an ancestor is signed.
func (c *Commit) readClaim() error {
	err := c.misshapen
	if err == nil && c.signature != "" && c.claim == nil {
		c.claim, err = parseClaim(c.signature)
	}
	if err != nil {
		return refuse(sources.NonCanonicalSignature, c.ID, "its signature %w", err)
	}
	return nil
}

// claims says whether c has a signature that can be read.
func (c *Commit) claims() bool { return c.readClaim() == nil && c.claim != nil }

// parseObject reads a commit without looking into its signature.
func parseObject(id string, raw []byte) (Commit, error) {
	if len(raw) > maxCommit {
		return Commit{}, refuse(sources.LimitExceeded, id, "it holds %d bytes, more than %d", len(raw), maxCommit)
	}
	c := Commit{ID: id}
	err := c.checkID(raw)
	if err == nil {
		err = c.parse(raw)
	}
	if err != nil {
		return Commit{}, refuse(sources.MalformedCommit, id, "%w", err)
	}
	return c, nil
}

func (c *Commit) checkID(raw []byte) error {
	object := append(fmt.Appendf(nil, "commit %d\x00", len(raw)), raw...)
	var name string
	switch len(c.ID) {
	case hex.EncodedLen(sha1.Size):
		sum := sha1.Sum(object)
		name = hex.EncodeToString(sum[:])
	case hex.EncodedLen(sha256.Size):
		sum := sha256.Sum256(object)
		name = hex.EncodeToString(sum[:])
	default:
		return fmt.Errorf("%q is not an object id", c.ID)
	}
	if name != c.ID {
		return fmt.Errorf("its bytes hash to %s: the object store is damaged", name)
	}
	return nil
}

func (c *Commit) parse(raw []byte) error {
	if bytes.IndexByte(raw, 0) >= 0 {
		return errors.New("it holds a NUL byte")
	}
	headers, err := splitHeaders(raw)
	if err != nil {
		return err
	}
	rest, err := c.parseFixed(headers)
	if err != nil {
		return err
	}
	if err := c.parseOptional(rest); err != nil {
		return err
	}
	c.Payload = withoutSignatures(raw, headers)
	sum := sha256.Sum256(c.Payload)
	c.PayloadHash = hex.EncodeToString(sum[:])
	return nil
}

// parseFixed reads the headers that every commit has, in git's order, and
// gives those after them.
func (c *Commit) parseFixed(headers []header) (rest []header, err error) {
	next := func(name string) (string, bool) {
		if len(headers) == 0 || headers[0].name != name {
			return "", false
		}
		value := headers[0].value()
		headers = headers[1:]
		return value, true
	}
	var ok bool
	if c.Tree, ok = next("tree"); !ok || !c.isID(c.Tree) {
		return nil, errors.New("its first header is not one tree id")
	}
	for parent, ok := next("parent"); ok; parent, ok = next("parent") {
		if !c.isID(parent) || len(c.Parents) == maxParents {
			return nil, fmt.Errorf("parent %d is not an id, or one too many", len(c.Parents)+1)
		}
		c.Parents = append(c.Parents, parent)
	}
	for _, name := range []string{"author", "committer"} {
		// Without the header the text is empty, which is no ident either.
		ident, _ := next(name)
		if c.CommittedAt, ok = parseIdent(ident); !ok {
			return nil, fmt.Errorf("there is no header %q with name, address, time and zone where it belongs", name)
		}
	}
	return headers, nil
}

// parseOptional reads what may stand after committer: encoding, the signature,
// and headers of other tools (mergetag, change-id).
func (c *Commit) parseOptional(headers []header) error {
	encodings := 0
	for i, h := range headers {
		switch h.name {
		case "tree", "parent", "author", "committer":
			return fmt.Errorf("header %q stands a second time or in the wrong place", h.name)
		case "encoding":
			if encodings++; encodings > 1 {
				return fmt.Errorf("header %q stands a second time", h.name)
			}
		case "gpgsig", "gpgsig-sha256":
			c.addSignature(h, i == len(headers)-1)
			continue
		}
		if bytes.IndexByte(h.raw, '\r') >= 0 {
			return fmt.Errorf("header %q holds a carriage return", h.name)
		}
	}
	return nil
}

// addSignature keeps the signature's text. git, the forges and Jujutsu write its
// header last: any other place would be a free choice that no signature covers.
func (c *Commit) addSignature(h header, last bool) {
	own := "gpgsig"
	if len(c.ID) == hex.EncodedLen(sha256.Size) {
		own = "gpgsig-sha256"
	}
	switch {
	case h.name != own:
		c.misshapen = fmt.Errorf("has a header %s, which does not belong in this kind of repository", h.name)
	case c.signature != "":
		c.misshapen = errors.New("is not the only one")
	case !last:
		c.misshapen = errors.New("is not the last header")
	case h.value() == "":
		c.misshapen = errors.New("is empty")
	}
	c.signature = h.value()
}

func (c *Commit) isID(text string) bool {
	return len(text) == len(c.ID) && strings.Trim(text, "0123456789abcdef") == ""
}
