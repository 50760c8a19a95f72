package record

import (
	"errors"
	"fmt"
)

// What is wrong with bytes of another member. Errors of this package wrap one of
// these and say more.
var (
	// ErrTooLarge is that a limit of this package is passed.
	ErrTooLarge = errors.New("too large")
	// ErrMalformed is that a value is not sound.
	ErrMalformed = errors.New("malformed")
	// ErrSchema is that the encoding is one of another major version.
	ErrSchema = errors.New("unknown schema")
	// ErrUnknownKey is that the signature is by none of the member's keys.
	ErrUnknownKey = errors.New("unknown key")
	// ErrSignature is that the signature does not verify, or is made for something
	// else.
	ErrSignature = errors.New("bad signature")
)

// malformed gives an ErrMalformed. Texts from outside belong into %.80q.
func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

func tooLarge(what string, has, most int) error {
	return fmt.Errorf("%w: %d %s, at most %d", ErrTooLarge, has, what, most)
}
