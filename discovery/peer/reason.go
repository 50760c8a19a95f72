package peer

import "fmt"

// Reason is the machine-readable cause, in the CamelCase of Kubernetes
// conditions. The texts are API: Peer's status, events and metrics use them.
type Reason string

// Reasons why a record, a part or an own record is refused. Where several hold,
// the first in this order wins.
const (
	UnknownMember     Reason = "UnknownMember"
	NoKeys            Reason = "NoKeys"
	TooLarge          Reason = "TooLarge"
	UnknownKey        Reason = "UnknownKey"
	BadSignature      Reason = "BadSignature"
	UnknownSchema     Reason = "UnknownSchema"
	Malformed         Reason = "Malformed"
	WrongClusterSet   Reason = "WrongClusterSet"
	WrongName         Reason = "WrongName"
	Replayed          Reason = "Replayed"
	Equivocation      Reason = "Equivocation"
	DuplicateIdentity Reason = "DuplicateIdentity"
)

// Reasons why nothing of a peer is imported, however good its record is.
const (
	NoRanges          Reason = "NoRanges"
	OverlappingRanges Reason = "OverlappingRanges"
)

// Reasons why an export or an endpoint of a good record is not imported.
const (
	NamespaceRefused Reason = "NamespaceRefused"
	OutsideRanges    Reason = "OutsideRanges"
	InsideOurRanges  Reason = "InsideOurRanges"
	SpecialAddress   Reason = "SpecialAddress"
	InvalidAddress   Reason = "InvalidAddress"
)

// Reasons of events that tell of a transition.
const (
	BecameFresh     Reason = "Fresh"
	BecameLate      Reason = "Late"
	EndpointsLate   Reason = "EndpointsNotReady"
	BecameWithdrawn Reason = "Withdrawn"
	LeftClusterList Reason = "LeftClusterList"
	KeyRemoved      Reason = "KeyRemoved"
	RemovalHeld     Reason = "RemovalHeld"
	RemovalReleased Reason = "RemovalReleased"
	Connected       Reason = "Connected"
	Disconnected    Reason = "Disconnected"
	ProblemResolved Reason = "ProblemResolved"
)

// Problem is a reason with a sentence that a person can act on. The zero value is
// that there is none.
type Problem struct {
	Reason  Reason
	Message string
}

func problem(reason Reason, format string, args ...any) Problem {
	return Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Event is a transition. It is given once, by the call that brought it about.
type Event struct {
	// Member is empty where it concerns this cluster's connection or the list.
	Member  string
	Reason  Reason
	Message string
	// Warning is that a person should look.
	Warning bool
}

func warning(member string, p Problem) Event {
	return Event{Member: member, Reason: p.Reason, Message: p.Message, Warning: true}
}

func normal(member string, reason Reason, format string, args ...any) Event {
	return Event{Member: member, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
