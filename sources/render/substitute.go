package render

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// variables replaces ${NAME} in the string values of objects: declared names
// only, in one pass, so that a value is never read again.
type variables struct {
	replacer *strings.Replacer
	longest  int
	// budget is what all replacing together may add, in bytes.
	budget int64
}

func newVariables(substitute map[string]string, budget int64) *variables {
	if len(substitute) == 0 {
		return nil
	}
	v := &variables{budget: budget}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(substitute)) {
		pairs = append(pairs, "${"+name+"}", substitute[name])
		v.longest = max(v.longest, len(substitute[name]))
	}
	v.replacer = strings.NewReplacer(pairs...)
	return v
}

// replace changes the values of content in place; keys stay.
func (v *variables) replace(content map[string]any) error {
	if v == nil {
		return nil
	}
	_, err := v.value(content)
	return err
}

func (v *variables) value(in any) (any, error) {
	var err error
	switch in := in.(type) {
	case string:
		return v.text(in)
	case []any:
		for i := range in {
			if in[i], err = v.value(in[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range in {
			if in[key], err = v.value(in[key]); err != nil {
				return nil, err
			}
		}
	}
	return in, nil
}

func (v *variables) text(in string) (string, error) {
	marks := strings.Count(in, "${")
	if marks == 0 {
		return in, nil
	}
	if v.budget -= int64(marks) * int64(v.longest); v.budget < 0 {
		return "", errors.New("substitution adds more than the limit on what an add-on may hold")
	}
	return v.replacer.Replace(in), nil
}
