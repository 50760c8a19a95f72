package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// level is an object or a list that the scan is in.
type level struct {
	// keys are those of an object so far; nil is a list.
	keys map[string]struct{}
	// inValue is that an object's key was read, and its value comes next.
	inValue bool
	// length is that of a list so far.
	length int
}

// scan walks through JSON text and makes no values of it. It refuses text that
// is not exactly one value, keys that stand twice in an object, and what is too
// deep or too long.
func scan(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var levels []level
	for done := false; !done; done = len(levels) == 0 {
		token, err := decoder.Token()
		if err != nil {
			return malformed("it is not JSON: %.120s", err.Error())
		}
		delim, isDelim := token.(json.Delim)
		if isDelim && (delim == '}' || delim == ']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if len(levels) > 0 {
			if err := levels[len(levels)-1].count(token); err != nil {
				return err
			}
		}
		if isDelim {
			levels = append(levels, open(delim))
		}
		if len(levels) > maxDepth {
			return tooLarge("levels of nesting", len(levels), maxDepth)
		}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return malformed("something follows its JSON value")
	}
	return nil
}

func open(delim json.Delim) level {
	if delim == '{' {
		return level{keys: map[string]struct{}{}}
	}
	return level{}
}

// count takes in a key, or the beginning of a value.
func (l *level) count(token json.Token) error {
	if l.keys == nil {
		l.length++
		if l.length > maxList {
			return tooLarge("elements of a list", l.length, maxList)
		}
		return nil
	}
	if l.inValue {
		l.inValue = false
		return nil
	}
	key, _ := token.(string)
	if _, twice := l.keys[key]; twice {
		return malformed("key %.80q stands twice in one object", key)
	}
	l.keys[key] = struct{}{}
	l.inValue = true
	return nil
}
