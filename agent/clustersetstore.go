package agent

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/fleetling/fleetling/agent/clusterset"
	"github.com/fleetling/fleetling/apply"
)

// clusterSetName is the ConfigMap of what must survive a restart: the highest
// sequence number by key, and the cluster list that is in effect. Some 450 bytes
// a member.
const clusterSetName = "fleetling-clusterset"

const keptKey = "kept.json"

const keptCluster = "cluster"

type clusterSetStore struct {
	client typedv1.ConfigMapInterface
	// cluster gives the UID of this cluster.
	cluster func(context.Context) (string, error)
}

// load gives the zero value where nothing was kept yet, and where it was kept for
// another cluster, as a restored backup has it: what that had read is nothing to
// this one. What can't be read is an error: without the highest sequence numbers an old record would be a new one.
func (s *clusterSetStore) load(ctx context.Context) (clusterset.Kept, error) {
	var kept clusterset.Kept
	cm, err := s.client.Get(ctx, clusterSetName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return kept, nil
	}
	if err != nil {
		return kept, fmt.Errorf("ConfigMap/%s/%s: %w", Namespace, clusterSetName, err)
	}
	uid, err := s.cluster(ctx)
	if err != nil || cm.Data[keptCluster] != uid {
		return kept, err
	}
	if err := json.Unmarshal([]byte(cm.Data[keptKey]), &kept); err != nil {
		return clusterset.Kept{}, fmt.Errorf("ConfigMap/%s/%s: %w", Namespace, clusterSetName, err)
	}
	return kept, nil
}

// save needs no lock: only the leader writes, and what it writes is whole.
func (s *clusterSetStore) save(ctx context.Context, kept clusterset.Kept) error {
	text, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("keep the ClusterSet: %w", err)
	}
	uid, err := s.cluster(ctx)
	if err != nil {
		return err
	}
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: clusterSetName},
		Data:       map[string]string{keptKey: string(text), keptCluster: uid},
	}
	_, err = s.client.Update(ctx, cm, metav1.UpdateOptions{FieldManager: apply.Manager})
	if apierrors.IsNotFound(err) {
		_, err = s.client.Create(ctx, cm, metav1.CreateOptions{FieldManager: apply.Manager})
	}
	if err != nil {
		return fmt.Errorf("keep the ClusterSet: %w", err)
	}
	return nil
}
