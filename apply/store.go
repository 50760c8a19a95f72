package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	inventoryLabel  = "fleetling.dev/inventory"
	inventoryPrefix = "fleetling-inventory-"
	inventoryKey    = "objects"
)

// store keeps the inventory in ConfigMaps fleetling-inventory-ADDON-N. It is
// their only writer: read once, then written under an optimistic lock.
type store struct {
	client typedv1.ConfigMapInterface
	// maps are the ConfigMaps as last seen, by name. Nil is not loaded.
	maps map[string]*corev1.ConfigMap
}

// load reads the whole inventory. A ConfigMap that does not parse is an error
// that names it: what it held is not known, so nothing may be pruned.
func (s *store) load(ctx context.Context) (Inventory, error) {
	list, err := s.client.List(ctx, metav1.ListOptions{LabelSelector: inventoryLabel})
	if err != nil {
		return nil, fmt.Errorf("read the inventory: %w", err)
	}
	inv := Inventory{}
	loaded := map[string]*corev1.ConfigMap{}
	for i := range list.Items {
		cm := &list.Items[i]
		addOn := cm.Labels[inventoryLabel]
		if chunkIndex(addOn, cm.Name) < 0 {
			return nil, fmt.Errorf("ConfigMap/%s/%s: label %s=%s does not go with its name: take the label off, or delete it", cm.Namespace, cm.Name, inventoryLabel, addOn)
		}
		if inv[addOn] == nil {
			inv[addOn] = Set{}
		}
		if err := inv[addOn].decodeChunk(cm.Data[inventoryKey]); err != nil {
			return nil, fmt.Errorf("ConfigMap/%s/%s: %w: delete it, and it is rebuilt from the live objects", cm.Namespace, cm.Name, err)
		}
		loaded[cm.Name] = cm
	}
	s.maps = loaded
	return inv, nil
}

// grow writes the ConfigMaps of a set to which identities came, the last one
// first: an identity that a new one pushes into the next ConfigMap is written
// there before it leaves this one.
func (s *store) grow(ctx context.Context, addOn string, set Set) error {
	chunks := set.encode()
	for i, text := range slices.Backward(chunks) {
		if err := s.write(ctx, addOn, chunkName(addOn, i), text); err != nil {
			return fmt.Errorf("write the inventory of add-on %s: %w", addOn, err)
		}
	}
	return nil
}

// shrink writes the ConfigMaps of a set from which identities went, or of which
// some are held by now, the first one first, and deletes those that are not
// needed any more.
func (s *store) shrink(ctx context.Context, addOn string, set Set) error {
	chunks := set.encode()
	for i, text := range chunks {
		if err := s.write(ctx, addOn, chunkName(addOn, i), text); err != nil {
			return fmt.Errorf("write the inventory of add-on %s: %w", addOn, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.maps)) {
		seen := s.maps[name]
		if seen.Labels[inventoryLabel] != addOn || chunkIndex(addOn, name) < len(chunks) {
			continue
		}
		lock := &metav1.Preconditions{UID: &seen.UID, ResourceVersion: &seen.ResourceVersion}
		err := s.client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: lock})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("shrink the inventory of add-on %s: %w", addOn, err)
		}
		delete(s.maps, name)
	}
	return nil
}

func (s *store) write(ctx context.Context, addOn, name, text string) error {
	seen := s.maps[name]
	if seen == nil {
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{inventoryLabel: addOn}},
			Data:       map[string]string{inventoryKey: text},
		}
		created, err := s.client.Create(ctx, cm, metav1.CreateOptions{FieldManager: Manager})
		if err != nil {
			return err
		}
		s.maps[name] = created
		return nil
	}
	if seen.Data[inventoryKey] == text {
		return nil
	}
	next := seen.DeepCopy()
	next.Data = map[string]string{inventoryKey: text}
	updated, err := s.client.Update(ctx, next, metav1.UpdateOptions{FieldManager: Manager})
	if err != nil {
		return err
	}
	s.maps[name] = updated
	return nil
}

func chunkName(addOn string, index int) string {
	return inventoryPrefix + addOn + "-" + strconv.Itoa(index)
}

// chunkIndex is the inverse of chunkName, and negative for any other name.
func chunkIndex(addOn, name string) int {
	index, err := strconv.Atoi(strings.TrimPrefix(name, inventoryPrefix+addOn+"-"))
	if err != nil || chunkName(addOn, index) != name {
		return -1
	}
	return index
}
