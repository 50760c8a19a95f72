package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// value turns a node without aliases into what an API server would decode from
// the JSON that kustomize writes for it: map[string]any, []any, string, bool,
// nil, int64 where the number is a whole one that fits, else float64.
func value(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.DocumentNode:
		return value(n.Content[0])
	case yaml.MappingNode:
		return mapping(n)
	case yaml.SequenceNode:
		items := make([]any, len(n.Content))
		for i, child := range n.Content {
			item, err := value(child)
			if err != nil {
				return nil, err
			}
			items[i] = item
		}
		return items, nil
	case yaml.ScalarNode:
		return scalar(n)
	default:
		return nil, errors.New("an alias that was not expanded")
	}
}

func mapping(n *yaml.Node) (any, error) {
	fields := make(map[string]any, len(n.Content)/2)
	for i := 0; i < len(n.Content)-1; i += 2 {
		key := n.Content[i]
		if tag := key.ShortTag(); key.Kind != yaml.ScalarNode || tag != "!!str" {
			return nil, errors.New("a key that is no text: quote it")
		}
		if _, twice := fields[key.Value]; twice {
			return nil, fmt.Errorf("the key %.60q stands here twice", key.Value)
		}
		field, err := value(n.Content[i+1])
		if err != nil {
			return nil, err
		}
		fields[key.Value] = field
	}
	return fields, nil
}

func scalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!str":
		return n.Value, nil
	case "!!null":
		return nil, nil
	case "!!int":
		if i, err := strconv.ParseInt(n.Value, 10, 64); err == nil && n.Value[0] != '0' {
			return i, nil
		}
	}
	var decoded any
	if err := n.Decode(&decoded); err != nil {
		return nil, errors.New("a value that its tag does not allow")
	}
	return plainValue(decoded)
}

func plainValue(decoded any) (any, error) {
	switch v := decoded.(type) {
	case string, bool, nil:
		return v, nil
	case int:
		return int64(v), nil
	case int64:
		return v, nil
	case uint64:
		return float64(v), nil
	case float64:
		return number(v)
	case time.Time:
		return v.Format(time.RFC3339Nano), nil
	}
	return nil, fmt.Errorf("a value of type %T, which JSON does not have", decoded)
}

// number is what a decoder of Kubernetes makes of the JSON text of f: 1e9 is
// the whole number 1000000000.
func number(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, errors.New("a number that JSON does not have: quote it")
	}
	text, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	if whole, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return whole, nil
	}
	return f, nil
}
