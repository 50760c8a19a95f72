package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// encode gives each object as JSON with sorted keys: all of what will be applied,
// and nothing else.
func encode(objects []Object) ([][]byte, error) {
	texts := make([][]byte, 0, len(objects))
	for _, object := range objects {
		text, err := json.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", object.GetName(), err)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// digest hashes objects as encode gives them, in their order. It gives "sha256:"
// and hex digits, and how many bytes they take.
func digest(texts [][]byte) (string, int64) {
	hash := sha256.New()
	var size int64
	for _, text := range texts {
		hash.Write(text)
		hash.Write([]byte{'\n'})
		size += int64(len(text))
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil)), size
}
