package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/e2e/world"
)

// Names in the example fleet.
const (
	platform = "platform"
	web      = "web"
)

// platformView is what of the add-on differs by region, or changes by a commit.
type platformView struct {
	path, image      string
	replicas, ready  int32
	settings         map[string]string
	disruptionBudget string
}

// showOverlays waits until the add-on is ready in both, and shows what differs.
func (d *demo) showOverlays(ctx context.Context) error {
	views := make([]platformView, len(d.members))
	err := d.each(ctx, func(ctx context.Context, i int, m *world.Member) error {
		if err := m.AddOnReady(ctx, platform, d.head); err != nil {
			return err
		}
		var err error
		views[i], err = viewPlatform(ctx, m)
		return err
	})
	if err != nil {
		return err
	}
	rows := [][]string{{"CLUSTER", "PATH", "READY", "IMAGE", "REGION", "LANGUAGE", "CLUSTER SAYS", "DISRUPTION BUDGET"}}
	regions := map[string]bool{}
	for i, v := range views {
		rows = append(rows, v.row(d.members[i].Name()))
		regions[v.settings["REGION"]] = true
	}
	d.printf("%s", table(rows))
	if len(regions) != len(views) {
		return fmt.Errorf("%d clusters in different regions, and %d regions in their settings", len(views), len(regions))
	}
	return nil
}

func (v platformView) row(name string) []string {
	return []string{
		name, v.path, fmt.Sprintf("%d/%d", v.ready, v.replicas), v.image,
		v.settings["REGION"], v.settings["LANGUAGE"], v.settings["CLUSTER"], v.disruptionBudget,
	}
}

// viewPlatform reads the add-on's objects in the cluster.
func viewPlatform(ctx context.Context, m *world.Member) (platformView, error) {
	addOn, err := m.AddOn(ctx, platform)
	if err != nil {
		return platformView{}, err
	}
	var deployment appsv1.Deployment
	if err := m.Client.Get(ctx, webKey(), &deployment); err != nil {
		return platformView{}, err
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	var settings corev1.ConfigMap
	if err := m.Client.Get(ctx, client.ObjectKey{Namespace: web, Name: container.EnvFrom[0].ConfigMapRef.Name}, &settings); err != nil {
		return platformView{}, err
	}
	var budgets policyv1.PodDisruptionBudgetList
	if err := m.Client.List(ctx, &budgets, client.InNamespace(web)); err != nil {
		return platformView{}, err
	}
	view := platformView{
		path: addOn.Status.Path, image: container.Image, settings: settings.Data,
		replicas: *deployment.Spec.Replicas, ready: deployment.Status.ReadyReplicas, disruptionBudget: "none",
	}
	for _, b := range budgets.Items {
		view.disruptionBudget = b.Name + ": at least " + b.Spec.MinAvailable.String()
	}
	return view, nil
}
