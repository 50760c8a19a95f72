package sources

import (
	"errors"
	"strconv"
	"strings"
)

// Reason is the machine-readable cause of a failure, in the CamelCase of
// Kubernetes conditions. The texts are API: status, metrics and documentation
// use them.
type Reason string

// Reasons why the remote branch could not be read (condition SourceReady).
const (
	Unreachable          Reason = "Unreachable"
	AuthenticationFailed Reason = "AuthenticationFailed"
	HostKeyMismatch      Reason = "HostKeyMismatch"
	CertificateInvalid   Reason = "CertificateInvalid"
	BranchNotFound       Reason = "BranchNotFound"
	RedirectRefused      Reason = "RedirectRefused"
	LimitExceeded        Reason = "LimitExceeded"
)

// Reasons why a head is refused (condition Verified). Where several hold, the
// first in this order wins; LimitExceeded comes last.
const (
	MalformedCommit       Reason = "MalformedCommit"
	NonCanonicalSignature Reason = "NonCanonicalSignature"
	Unsigned              Reason = "Unsigned"
	UnknownKey            Reason = "UnknownKey"
	RevokedKey            Reason = "RevokedKey"
	WeakAlgorithm         Reason = "WeakAlgorithm"
	ClockSkew             Reason = "ClockSkew"
	ExpiredKey            Reason = "ExpiredKey"
	BadSignature          Reason = "BadSignature"
	HistoryRewound        Reason = "HistoryRewound"
	NotIntroduced         Reason = "NotIntroduced"
)

// Reasons why the add-ons of this cluster can't be told (condition Selected).
const (
	IdentityMissing   Reason = "IdentityMissing"
	IdentityDiffers   Reason = "IdentityDiffers"
	NotListed         Reason = "NotListed"
	InvalidFleetFile  Reason = "InvalidFleetFile"
	UnknownField      Reason = "UnknownField"
	MissingLabel      Reason = "MissingLabel"
	UnknownLabel      Reason = "UnknownLabel"
	InvalidLabelValue Reason = "InvalidLabelValue"
	EmptySelector     Reason = "EmptySelector"
	PathNotFound      Reason = "PathNotFound"
	DependencyCycle   Reason = "DependencyCycle"
	DuplicateCluster  Reason = "DuplicateCluster"
)

// Reasons why an add-on could not be rendered (condition Rendered).
const (
	RenderFailed Reason = "RenderFailed"
	EmptyRender  Reason = "EmptyRender"
)

// Error is a failure that a person can mend. Empty fields are not known, or do
// not apply.
type Error struct {
	// Reason is the one cause that status shows.
	Reason Reason
	// AddOn is the name of the add-on that is concerned.
	AddOn string
	// File is a slash-separated path from the root of the fleet repository,
	// and Line its line, counted from 1.
	File string
	Line int
	// Object is Kind/name or Kind/namespace/name.
	Object string
	// Err says what is wrong and what to do.
	Err error
}

// Error gives "file:line: add-on NAME: Kind/namespace/name: text", without what
// is not known. The reason is not part of it: status shows it beside the text.
func (e *Error) Error() string {
	var parts []string
	if e.File != "" {
		place := e.File
		if e.Line > 0 {
			place += ":" + strconv.Itoa(e.Line)
		}
		parts = append(parts, place)
	}
	if e.AddOn != "" {
		parts = append(parts, "add-on "+e.AddOn)
	}
	if e.Object != "" {
		parts = append(parts, e.Object)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

// Unwrap gives the error below, for errors.Is and errors.AsType.
func (e *Error) Unwrap() error { return e.Err }

// ReasonOf gives the reason of the first *Error in err's tree, and "" when
// there is none.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}
