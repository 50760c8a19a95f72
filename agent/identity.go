package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/fleet"
)

// told is the identity that counts, and what is wrong with the one that was
// found, if anything. A lost, emptied or broken identity holds the last good one.
type told struct {
	identity *fleet.Identity
	err      error
	// nameOnly is that there is no identity, and never was: the name is that which
	// Cluster API has given to the nodes.
	nameOnly bool
	// differs is why nothing new may be applied although there is an identity.
	differs error
}

// readIdentity reads the mounted file.
func readIdentity(path string) (fleet.Identity, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fleet.Identity{}, &sources.Error{
			Reason: sources.IdentityMissing,
			Err:    fmt.Errorf("%s is not there: create ConfigMap %s in namespace %s with key identity.yaml", path, identityName, Namespace),
		}
	}
	if err != nil {
		return fleet.Identity{}, &sources.Error{Reason: sources.IdentityMissing, Err: err}
	}
	return fleet.ParseIdentity(path, data)
}

// identityName is the ConfigMap that is mounted.
const identityName = "fleetling-identity"

const identityKey = "identity.yaml"

// identityOf takes the ConfigMap, where the API server has shown one: kubelet
// brings the mounted file up to a minute later. Nil is none, and the file counts:
// before the API server answers, and where something else puts it there.
func identityOf(cm *corev1.ConfigMap, path string) (fleet.Identity, error) {
	if cm == nil {
		return readIdentity(path)
	}
	place := fmt.Sprintf("ConfigMap/%s/%s", Namespace, identityName)
	text, ok := cm.Data[identityKey]
	if !ok {
		return fleet.Identity{}, &sources.Error{Reason: sources.IdentityMissing, Err: fmt.Errorf("%s has no key %s", place, identityKey)}
	}
	return fleet.ParseIdentity(place+" "+identityKey, []byte(text))
}

// tell decides who this cluster is. clusterName is the name that Cluster API has
// given to all control plane nodes, or "".
func tell(found fleet.Identity, err error, last *fleet.Identity, clusterName string) told {
	t := holdIdentity(found, err, last)
	switch {
	case clusterName == "":
	case t.identity == nil && sources.ReasonOf(err) == sources.IdentityMissing:
		t.identity, t.nameOnly = &fleet.Identity{Name: clusterName}, true
		t.err = &sources.Error{
			Reason: sources.IdentityMissing,
			Err:    fmt.Errorf("%w; meanwhile this cluster goes by the name that Cluster API has given its nodes, %s, and by the labels of its entry", err, clusterName),
		}
	case t.identity != nil && t.identity.Name != clusterName:
		t.differs = &sources.Error{
			Reason: sources.IdentityDiffers,
			Err: fmt.Errorf("the identity says that this cluster is %s, and annotation %s on its control plane nodes says %s: mend ConfigMap %s/%s",
				t.identity.Name, clusterNameAnnotation, clusterName, Namespace, identityName),
		}
	}
	return t
}

// holdIdentity decides which identity counts. Labels that are all gone at once
// are an accident more often than a wish, and they choose what is installed.
func holdIdentity(found fleet.Identity, err error, last *fleet.Identity) told {
	switch {
	case err != nil:
		return told{identity: last, err: err}
	case last != nil && len(found.Labels) == 0 && len(last.Labels) > 0:
		return told{identity: last, err: &sources.Error{
			Reason: sources.IdentityDiffers,
			Err:    errors.New("the identity has lost all its labels: the last ones stay in force; give it at least one label to change them"),
		}}
	case last != nil && found.Name != last.Name:
		return told{identity: last, err: &sources.Error{
			Reason: sources.IdentityDiffers,
			Err:    fmt.Errorf("the identity says that this cluster is %s, and it was %s: the last one stays in force; delete ConfigMap %s/%s if it is another cluster now", found.Name, last.Name, Namespace, pinName),
		}}
	}
	return told{identity: &found}
}
