package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fleetling/fleetling/discovery"
)

// Encode gives the payload of a record: the same bytes for the same value. r is
// not changed; its lists may be in any order.
func (r Record) Encode() ([]byte, error) {
	r = r.canonical()
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return encode(r, MaxSealed-maxArmor, "record")
}

// DecodeRecord reads a payload that Encode gave, or an equal member's.
func DecodeRecord(payload []byte) (Record, error) {
	var r Record
	if err := decode(payload, MaxSealed, true, &r); err != nil {
		return Record{}, fmt.Errorf("record: %w", err)
	}
	r = r.canonical()
	if err := r.check(); err != nil {
		return Record{}, fmt.Errorf("record: %w", err)
	}
	return r, nil
}

// Content is the digest of what a record says, without its sequence number and
// its time: a renewal has the same one.
func (r Record) Content() discovery.Digest {
	r = r.canonical()
	r.Sequence, r.Issued = 0, time.Time{}
	data, err := json.Marshal(r)
	if err != nil {
		// Only a creation time beyond the year 9999 can't be written, and check
		// refuses it: such a record was neither encoded nor decoded here.
		return ""
	}
	return discovery.DigestOf(data)
}

// Encode gives the payload of a status.
func (s Status) Encode() ([]byte, error) {
	s = s.canonical()
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	return encode(s, MaxSealed-maxArmor, "status")
}

// DecodeStatus reads a payload that Encode gave.
func DecodeStatus(payload []byte) (Status, error) {
	var s Status
	if err := decode(payload, MaxSealed, true, &s); err != nil {
		return Status{}, fmt.Errorf("status: %w", err)
	}
	s = s.canonical()
	if err := s.check(); err != nil {
		return Status{}, fmt.Errorf("status: %w", err)
	}
	return s, nil
}

// Encode gives a part. Of several endpoints with one hostname the first in order
// keeps it: Pods of a Deployment may share one, DNS names of an import may not.
func (s Slice) Encode() ([]byte, error) {
	s = s.canonical().oneHostnameEach()
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("part: %w", err)
	}
	return encode(s, MaxPart, "part")
}

// DecodeSlice reads a part.
func DecodeSlice(part []byte) (Slice, error) {
	var s Slice
	if err := decode(part, MaxPart, false, &s); err != nil {
		return Slice{}, fmt.Errorf("part: %w", err)
	}
	s = s.canonical()
	if err := s.check(); err != nil {
		return Slice{}, fmt.Errorf("part: %w", err)
	}
	return s, nil
}

func encode(value any, most int, what string) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if len(data) > most {
		return nil, fmt.Errorf("%s: %w", what, tooLarge("bytes", len(data), most))
	}
	return data, nil
}

// decode reads JSON text of a known schema into value.
func decode(data []byte, most int, versioned bool, value any) error {
	if len(data) > most {
		return tooLarge("bytes", len(data), most)
	}
	if err := scan(data); err != nil {
		return err
	}
	var version struct {
		Schema int `json:"schema"`
	}
	if versioned {
		if err := unmarshal(data, &version); err != nil {
			return err
		}
		if version.Schema != Schema {
			return fmt.Errorf("%w %d: this version reads %d", ErrSchema, version.Schema, Schema)
		}
	}
	return unmarshal(data, value)
}

// unmarshal does not hand on json's text, which may hold what is in the data.
func unmarshal(data []byte, value any) error {
	err := json.Unmarshal(data, value)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return malformed("field %.80q can't be a %.40s", wrong.Field, wrong.Value)
	}
	if err != nil {
		return malformed("a value can't be read")
	}
	return nil
}
