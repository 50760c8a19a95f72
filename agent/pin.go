package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetling/fleetling/apply"
	"github.com/fleetling/fleetling/sources/fleet"
	"github.com/fleetling/fleetling/sources/trust"
)

// pinName is the ConfigMap that holds the pin.
const pinName = "fleetling-pin"

// pin is what a cluster must not forget: how far history is verified, and what
// goes with that. It is written before the first apply.
type pin struct {
	trust.Pin
	// Cluster is the UID of namespace kube-system: what is kept for one cluster is
	// nothing to another one, whose objects were restored from its backup.
	Cluster string
	Signer  trust.Signer
	// Snapshot is the digest of what is rolled out, or "".
	Snapshot string
	// Listed says that the repository had an entry for this cluster.
	Listed bool
	// Identity is the last good one, and Selection what it selects at this
	// revision; nil where that could not be told.
	Identity  *fleet.Identity
	Selection *fleet.Selection
	// Whole says that the snapshot is all of that selection, so that a new Pod
	// knows it without Git.
	Whole bool
}

// pins reads and writes the pin under an optimistic lock.
type pins struct {
	client typedv1.ConfigMapInterface
	seen   *corev1.ConfigMap
}

// load gives nil where there is no pin yet. A pin that can't be read is an
// error: going on without it would be starting all over.
func (p *pins) load(ctx context.Context) (*pin, error) {
	cm, err := p.client.Get(ctx, pinName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		p.seen = nil
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the pin: %w", err)
	}
	decoded, err := decodePin(cm.Data)
	if err != nil {
		return nil, fmt.Errorf("ConfigMap/%s/%s: %w: mend it, or delete it to be introduced again", Namespace, pinName, err)
	}
	p.seen = cm
	return decoded, nil
}

// save writes the pin. A conflict means that somebody else changed or deleted
// it: it has to be loaded again first.
func (p *pins) save(ctx context.Context, next pin) error {
	data, err := next.encode()
	if err != nil {
		return err
	}
	written := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: pinName}, Data: data}
	if p.seen == nil {
		written, err = p.client.Create(ctx, written, metav1.CreateOptions{FieldManager: apply.Manager})
	} else {
		written.ResourceVersion = p.seen.ResourceVersion
		written, err = p.client.Update(ctx, written, metav1.UpdateOptions{FieldManager: apply.Manager})
	}
	if err != nil {
		return fmt.Errorf("write the pin: %w", err)
	}
	p.seen = written
	return nil
}

func (p pin) encode() (map[string]string, error) {
	data := map[string]string{
		"commit": p.Commit, "payloadHash": p.PayloadHash, "signedAt": p.SignedAt.UTC().Format(time.RFC3339),
		"signer": p.Signer.Name, "fingerprint": p.Signer.Fingerprint,
		"snapshot": p.Snapshot, "cluster": p.Cluster,
	}
	if p.Listed {
		data["listed"] = "true"
	}
	if p.Identity != nil {
		text, err := yaml.Marshal(identityFile{
			APIVersion: "config.fleetling.dev/v1alpha1", Kind: "Identity",
			Name: p.Identity.Name, ClusterSet: p.Identity.ClusterSet, Labels: p.Identity.Labels,
		})
		if err != nil {
			return nil, fmt.Errorf("encode identity: %w", err)
		}
		data["identity.yaml"] = string(text)
	}
	if p.Selection != nil {
		text, err := json.Marshal(p.Selection)
		if err != nil {
			return nil, fmt.Errorf("encode selection: %w", err)
		}
		data["selection.json"] = string(text)
		data["whole"] = strconv.FormatBool(p.Whole)
	}
	return data, nil
}

func decodePin(data map[string]string) (*pin, error) {
	signedAt, err := time.Parse(time.RFC3339, data["signedAt"])
	if err != nil {
		return nil, fmt.Errorf("signedAt: %w", err)
	}
	p := &pin{
		Pin:      trust.Pin{Commit: data["commit"], PayloadHash: data["payloadHash"], SignedAt: signedAt},
		Signer:   trust.Signer{Name: data["signer"], Fingerprint: data["fingerprint"]},
		Snapshot: data["snapshot"], Cluster: data["cluster"], Listed: data["listed"] == "true",
	}
	if !isCommit(p.Commit) || len(p.PayloadHash) != 64 {
		return nil, errors.New("commit or payloadHash is not whole")
	}
	if text := data["identity.yaml"]; text != "" {
		id, err := fleet.ParseIdentity("identity.yaml", []byte(text))
		if err != nil {
			return nil, err
		}
		p.Identity = &id
	}
	if text := data["selection.json"]; text != "" {
		if err := json.Unmarshal([]byte(text), &p.Selection); err != nil {
			return nil, fmt.Errorf("selection.json: %w", err)
		}
		p.Whole = data["whole"] == "true"
	}
	return p, nil
}

// identityFile is the shape of identity.yaml.
type identityFile struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Name       string            `json:"name"`
	ClusterSet string            `json:"clusterSet"`
	Labels     map[string]string `json:"labels,omitempty"`
}
