package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// digest hashes the objects, in their order, as JSON with sorted keys: all of
// what will be applied, and nothing else. It gives "sha256:" and hex digits,
// and how many bytes the objects take.
func digest(objects []Object) (string, int64, error) {
	hash := sha256.New()
	var size int64
	for _, object := range objects {
		text, err := json.Marshal(object.Object)
		if err != nil {
			return "", 0, fmt.Errorf("%s: %w", object.GetName(), err)
		}
		hash.Write(append(text, '\n'))
		size += int64(len(text))
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil)), size, nil
}
