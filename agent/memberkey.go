package agent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/fleetling/fleetling/apply"
	"github.com/fleetling/fleetling/discovery/record"
)

// The Secret that holds this member's key, and its key in there: the name that
// ssh credentials have, too.
const (
	memberKeySecret = "fleetling-member-key"
	memberKeyName   = "identity"
)

// memberKey reads this member's key, and makes it when there is none. It is never
// replaced: others know it by the cluster's entry.
func memberKey(ctx context.Context, secrets typedv1.SecretInterface) (record.Key, error) {
	secret, err := secrets.Get(ctx, memberKeySecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return newMemberKey(ctx, secrets)
	}
	if err != nil {
		return record.Key{}, fmt.Errorf("member key: %w", err)
	}
	key, err := record.ParseKey(secret.Data[memberKeyName])
	if err != nil {
		return record.Key{}, fmt.Errorf("secret %s/%s: key %s: %w: mend it, or delete it to get a new key, which the cluster's entry must name then",
			Namespace, memberKeySecret, memberKeyName, err)
	}
	return key, nil
}

func newMemberKey(ctx context.Context, secrets typedv1.SecretInterface) (record.Key, error) {
	private, public, err := record.NewKey()
	if err != nil {
		return record.Key{}, fmt.Errorf("member key: %w", err)
	}
	_, err = secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: memberKeySecret},
		Data:       map[string][]byte{memberKeyName: private, memberKeyName + ".pub": []byte(public + "\n")},
	}, metav1.CreateOptions{FieldManager: apply.Manager})
	if err != nil {
		return record.Key{}, fmt.Errorf("member key: %w", err)
	}
	return record.ParseKey(private)
}
