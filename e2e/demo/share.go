package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
	"github.com/fleetling/fleetling/e2e/harness"
	"github.com/fleetling/fleetling/e2e/world"
)

// The tenant's Service that is shared.
const (
	shared  = "catalog"
	address = shared + "." + shared + ".svc.clusterset.local"
)

// shareService exports a Service in the first cluster and asks it in the second.
func (d *demo) shareService(ctx context.Context) error {
	from, to := d.members[0], d.members[1]
	server := podOf(shared, "registry.example.com/alpine/socat:1.8", false)
	server.Labels = map[string]string{"app": shared}
	server.Spec.Containers[0].Command = []string{"/bin/sh"}
	server.Spec.Containers[0].Args = []string{"-c", "socat TCP-LISTEN:80,crlf,reuseaddr,fork SYSTEM:'echo \"catalog of " + from.Name() + "\"'"}
	asker := podOf("asker", "registry.example.com/nicolaka/netshoot:1", false)
	asker.Spec.Containers[0].Args = []string{"/bin/sh", "-c", "while :; do sleep 5; done"}
	for m, objects := range map[*world.Member][]client.Object{
		from: {server, &corev1.Service{Spec: corev1.ServiceSpec{Selector: server.Labels, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}, &v1beta1.ServiceExport{}},
		to:   {asker},
	} {
		if err := m.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shared}}); err != nil {
			return err
		}
		for _, o := range objects {
			o.SetNamespace(shared)
			if o.GetName() == "" {
				o.SetName(shared)
			}
			if err := m.Client.Create(ctx, o); err != nil {
				return err
			}
		}
	}
	start := time.Now()
	d.printf("%s: Service %s/%s, exported", from.Name(), shared, shared)
	answer, err := d.ask(ctx)
	if err != nil {
		return err
	}
	d.printf("%s: %s answers %q, after %s (the registry is looked at every 5 s)", to.Name(), address, answer, seconds(time.Since(start)))
	return nil
}

// ask asks the Service by its name, from a Pod of the second cluster.
func (d *demo) ask(ctx context.Context) (answer string, _ error) {
	to := d.set.Cluster(d.members[1].Name())
	err := harness.Eventually(ctx, func(ctx context.Context) error {
		result, err := to.Exec(ctx, shared, "asker", "sh", "-c", "nc -w 2 "+address+" 80 </dev/null")
		if err != nil {
			return err
		}
		answer = strings.TrimSpace(result.Stdout)
		if !strings.HasPrefix(answer, "catalog of ") {
			return fmt.Errorf("%s: %q %q", address, result.Stdout, result.Stderr)
		}
		return nil
	})
	return answer, err
}

// showFleet runs `fleetling fleet` in the first cluster, once all have told of
// the newest revision.
func (d *demo) showFleet(ctx context.Context) error {
	var text string
	err := harness.Eventually(ctx, func(ctx context.Context) error {
		var code int
		var err error
		text, code, err = d.members[0].Fleetling(ctx, "fleet", "--config", d.members[0].ConfigFile())
		if err == nil && code != 0 {
			err = fmt.Errorf("fleetling fleet ends with %d: %s", code, text)
		}
		return err
	})
	if err != nil {
		return err
	}
	d.printf("%s", text)
	return nil
}

// cutRegistry takes the second cluster's way to Git and registry away.
func (d *demo) cutRegistry(ctx context.Context) error {
	to := d.members[1]
	site := d.set.Cluster(to.Name()).Site
	if err := site.To(d.set.Hub).Cut(ctx); err != nil {
		return err
	}
	if err := to.Condition(ctx, v1alpha1.Connected, "Unreachable"); err != nil {
		return err
	}
	self, err := to.Self(ctx)
	if err != nil {
		return err
	}
	d.printf("%s: %s", to.Name(), conditionOf(self.Status.Conditions, v1alpha1.Connected))
	answer, err := d.ask(ctx)
	if err != nil {
		return err
	}
	d.printf("%s: %s still answers %q", to.Name(), address, answer)
	text, code, err := d.members[0].Fleetling(ctx, "fleet", "--config", d.members[0].ConfigFile())
	if err != nil {
		return err
	}
	d.printf("fleetling fleet in %s, exit code %d (it becomes late when its lease is over, after 3 minutes):\n%s", d.members[0].Name(), code, text)
	return site.To(d.set.Hub).Heal(ctx)
}

func conditionOf(conditions []metav1.Condition, kind string) string {
	for _, c := range conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return kind + " is not there"
}
