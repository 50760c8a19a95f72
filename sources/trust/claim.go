package trust

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// claim is what a signature says of itself, in canonical form. Nothing of it is
// proven before check.
type claim interface {
	// key is the id of the key that claims to have signed.
	key() string
	// weak says why such a signature proves nothing, or is empty.
	weak() string
	// signedAt is when it claims to be made.
	signedAt(c Commit) time.Time
	// check does the arithmetic, with a key that was found by key.
	check(payload []byte, k *key) error
}

// parseClaim reads the text of a signature. The error continues the sentence
// "its signature ...".
func parseClaim(text string) (c claim, err error) {
	err = guard(func() error {
		switch {
		case strings.HasPrefix(text, sshBegin):
			c, err = parseSSHClaim(text)
		case strings.HasPrefix(text, pgpBegin):
			c, err = parsePGPClaim(text)
		default:
			err = errors.New("is neither an SSH nor an OpenPGP signature")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// guard runs what a library does with bytes from outside. A panic in there is
// a refusal, not the end of the agent.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("makes the cryptographic library panic (%T)", r)
		}
	}()
	return f()
}
