package mcs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// write makes the cluster hold what is wanted: the address first, the
// ServiceImport last, so that nobody is led to what is not there yet. Going away
// is the other way round.
func (i *Importer) write(ctx context.Context, seen scene, p plan) error {
	if err := i.foreign(seen, p); err != nil {
		return err
	}
	if len(p.wanted.Clusters) == 0 {
		return i.clear(ctx, seen, p)
	}
	if p.held() && seen.imported.ResourceVersion != "" {
		return i.writeSlices(ctx, seen, p)
	}
	derived, err := i.writeDerived(ctx, seen, p)
	if err != nil {
		return err
	}
	if err := i.writeSlices(ctx, seen, p); err != nil {
		return err
	}
	if err := i.writeImport(ctx, seen, serviceImport(p.wanted, derived)); err != nil {
		return err
	}
	if derived == nil {
		return i.remove(ctx, seen.derived)
	}
	return nil
}

// foreign tells of objects that stand in the way. One that is not wanted here
// stands in nobody's.
func (i *Importer) foreign(seen scene, p plan) error {
	if len(p.wanted.Clusters) == 0 {
		return nil
	}
	var errs []error
	for _, object := range []client.Object{seen.imported, seen.derived} {
		if object.GetResourceVersion() != "" && !ours(object) {
			i.config.Events.Eventf(object, nil, corev1.EventTypeWarning, "OwnedByOther", "Import",
				"imported from %s: not done, since this object is %s", list(p.wanted.Clusters), errNotOurs)
			errs = append(errs, fmt.Errorf("%s: %w", describe(object), errNotOurs))
		}
	}
	return errors.Join(errs...)
}

// clear takes away what nobody exports any more.
func (i *Importer) clear(ctx context.Context, seen scene, p plan) error {
	if p.held() {
		return i.removeSlices(ctx, seen, p, nil)
	}
	return errors.Join(i.remove(ctx, seen.imported), i.removeSlices(ctx, seen, p, nil), i.remove(ctx, seen.derived))
}

// writeDerived returns the Service as the API server has it, nil where there is
// to be none.
func (i *Importer) writeDerived(ctx context.Context, seen scene, p plan) (*corev1.Service, error) {
	if p.wanted.Service.Type == headless {
		return nil, nil
	}
	derived := derivedService(p.wanted)
	written, err := i.put(ctx, derived, seen.derived)
	if err != nil {
		return nil, err
	}
	if !written {
		return seen.derived, nil
	}
	return derived, nil
}

// writeSlices removes none before all are written: an endpoint may have moved
// from one to another.
func (i *Importer) writeSlices(ctx context.Context, seen scene, p plan) error {
	live := make(map[string]*discoveryv1.EndpointSlice, len(seen.ours))
	for j := range seen.ours {
		live[seen.ours[j].Name] = &seen.ours[j]
	}
	wanted := map[string]bool{}
	var errs []error
	// Backwards, so that what is new at the front has been copied to the back before
	// it is overwritten.
	for _, slice := range slices.Backward(endpointSlices(p.wanted)) {
		wanted[slice.Name] = true
		old := live[slice.Name]
		if old == nil {
			old = &discoveryv1.EndpointSlice{}
		}
		if _, err := i.put(ctx, slice, old); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return i.removeSlices(ctx, seen, p, wanted)
}

func (i *Importer) removeSlices(ctx context.Context, seen scene, p plan, wanted map[string]bool) error {
	var errs []error
	for j := range seen.ours {
		slice := &seen.ours[j]
		if wanted[slice.Name] || p.unknown[slice.Labels[v1beta1.LabelSourceCluster]] {
			continue
		}
		errs = append(errs, i.remove(ctx, slice))
	}
	return errors.Join(errs...)
}

func (i *Importer) writeImport(ctx context.Context, seen scene, object *v1beta1.ServiceImport) error {
	status := object.Status
	live := seen.imported
	written, err := i.put(ctx, object, live)
	if err != nil {
		return err
	}
	if written {
		live = object
	}
	same := carry(live.Status.Conditions, status.Conditions, live.Generation, i.config.Now())
	if same && live.Status.EndpointSliceObjects == status.EndpointSliceObjects && slices.Equal(live.Status.Clusters, status.Clusters) {
		return nil
	}
	return i.putStatus(ctx, &v1beta1.ServiceImport{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.ServiceImportKindName}, ObjectMeta: nameOf(live), Status: status,
	}, live.UID)
}

// report writes the conditions of this cluster's own export.
func (i *Importer) report(ctx context.Context, export *v1beta1.ServiceExport, own *Share, why *invalid, p plan) error {
	if own == nil && why == nil {
		return nil
	}
	v := verdict{invalid: why, conflicts: p.wanted.Conflicts}
	if own != nil {
		v.left = unfitting(export)
		v.published = i.config.Publisher.Published(own.Key(), own.Export)
	}
	conditions := exportConditions(v)
	if p.held() {
		conditions = keepConflict(export.Status.Conditions, conditions)
	}
	if carry(export.Status.Conditions, conditions, export.Generation, i.config.Now()) {
		return nil
	}
	return i.putStatus(ctx, &v1beta1.ServiceExport{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.ServiceExportKindName},
		ObjectMeta: nameOf(export), Status: v1beta1.ServiceExportStatus{Conditions: conditions},
	}, export.UID)
}

// keepConflict leaves what was said of conflicts as it is: with whom there is one
// isn't known now.
func keepConflict(old, next []metav1.Condition) []metav1.Condition {
	for i := range next {
		if next[i].Type != string(v1beta1.ServiceExportConditionConflict) {
			continue
		}
		for _, c := range old {
			if c.Type == next[i].Type {
				next[i] = c
				return next
			}
		}
		return slices.Delete(next, i, i+1)
	}
	return next
}
