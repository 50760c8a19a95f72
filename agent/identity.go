package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/fleet"
)

// told is the identity that counts, and what is wrong with the one that was
// found, if anything. A lost, emptied or broken identity holds the last good one.
type told struct {
	identity *fleet.Identity
	err      error
}

// readIdentity reads the mounted file.
func readIdentity(path string) (fleet.Identity, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fleet.Identity{}, &sources.Error{
			Reason: sources.IdentityMissing,
			Err:    fmt.Errorf("%s is not there: create ConfigMap %s in namespace %s with key identity.yaml", path, "fleetling-identity", Namespace),
		}
	}
	if err != nil {
		return fleet.Identity{}, &sources.Error{Reason: sources.IdentityMissing, Err: err}
	}
	return fleet.ParseIdentity(path, data)
}

// holdIdentity decides which identity counts. Labels that are all gone at once
// are an accident more often than a wish, and they choose what is installed.
func holdIdentity(found fleet.Identity, err error, last *fleet.Identity) told {
	switch {
	case err != nil:
		return told{last, err}
	case last != nil && len(found.Labels) == 0 && len(last.Labels) > 0:
		return told{last, &sources.Error{
			Reason: sources.IdentityDiffers,
			Err:    errors.New("the identity has lost all its labels: the last ones stay in force; give it at least one label to change them"),
		}}
	case last != nil && found.Name != last.Name:
		return told{last, &sources.Error{
			Reason: sources.IdentityDiffers,
			Err:    fmt.Errorf("the identity says that this cluster is %s, and it was %s: the last one stays in force; delete ConfigMap %s/%s if it is another cluster now", found.Name, last.Name, Namespace, pinName),
		}}
	}
	return told{&found, nil}
}
