package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/agent/api/v1alpha1"
)

// overview is what `fleetling status` knows.
type overview struct {
	Member v1alpha1.Member  `json:"member"`
	AddOns []v1alpha1.AddOn `json:"addOns"`
}

func statusCommand(world World) *cobra.Command {
	var kubeconfig, output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show this cluster at a glance: revision, signer, add-ons, failures and what to do",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			seen, err := readOverview(cmd.Context(), kubeconfig)
			if err != nil {
				return err
			}
			if err := seen.show(world.Out, output); err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(seen.Member.Status.Conditions, v1alpha1.Ready) {
				return errNotGood
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig (default: as kubectl)")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml")
	return cmd
}

// membersClient reads and writes what the agent says of this cluster.
func membersClient(kubeconfig string) (client.Client, error) {
	config, err := restConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	return c, nil
}

func readOverview(ctx context.Context, kubeconfig string) (overview, error) {
	c, err := membersClient(kubeconfig)
	if err != nil {
		return overview{}, err
	}
	var seen overview
	err = c.Get(ctx, client.ObjectKey{Name: v1alpha1.Self}, &seen.Member)
	switch {
	case meta.IsNoMatchError(err):
		return overview{}, fmt.Errorf("fleetling is not installed in this cluster: kubectl apply -k manifests")
	case apierrors.IsNotFound(err):
		return overview{}, fmt.Errorf("the agent has not reported yet: see its log, kubectl -n fleetling-system logs deployment/fleetling")
	case err != nil:
		return overview{}, fmt.Errorf("read member/self: %w", err)
	}
	var addOns v1alpha1.AddOnList
	if err := c.List(ctx, &addOns); err != nil {
		return overview{}, fmt.Errorf("list AddOns: %w", err)
	}
	seen.AddOns = addOns.Items
	seen.Member.ManagedFields = nil
	for i := range seen.AddOns {
		seen.AddOns[i].ManagedFields = nil
	}
	return seen, nil
}

func (o overview) show(out io.Writer, format string) error {
	if format == "" {
		return o.table(out)
	}
	return encode(out, format, o, "json or yaml")
}

func (o overview) table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	s := o.Member.Status
	if s.Identity != nil {
		fmt.Fprintf(w, "Cluster:\t%s (ClusterSet %s)\n", s.Identity.Name, s.Identity.ClusterSet)
		fmt.Fprintf(w, "Labels:\t%s\n", labelWords(s.Identity.Labels))
	}
	if s.Source != nil {
		fmt.Fprintf(w, "Source:\t%s %s\n", s.Source.URL, s.Source.Branch)
	}
	if s.Revision != nil {
		fmt.Fprintf(w, "Revision:\t%s, signed by %s (%s) at %s\n", s.Revision.Short, s.Revision.Signer, s.Revision.Fingerprint, s.Revision.SignedAt.UTC().Format("2006-01-02 15:04:05 MST"))
	}
	fmt.Fprintf(w, "Ready:\t%s\n", conditionWords(s.Conditions, v1alpha1.Ready))
	for _, kind := range []string{v1alpha1.Paused, v1alpha1.SourceReady, v1alpha1.Verified, v1alpha1.Selected, v1alpha1.SnapshotKept} {
		c := meta.FindStatusCondition(s.Conditions, kind)
		if c != nil && (c.Status != metav1.ConditionTrue || noteworthy(c.Reason)) {
			fmt.Fprintf(w, "%s:\t%s\n", kind, conditionWords(s.Conditions, kind))
		}
	}
	if len(s.Strays) > 0 {
		fmt.Fprintf(w, "Strays:\t%s: labelled as ours, and nothing accounts for them; they are left alone\n", strings.Join(s.Strays, ", "))
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "ADD-ON\tREADY\tREASON\tOBJECTS\tFAILED\tHELD\tREVISION\tPATH")
	for _, a := range o.AddOns {
		ready := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.Ready)
		if ready == nil {
			ready = &metav1.Condition{Status: metav1.ConditionUnknown}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", a.Name, ready.Status, ready.Reason, a.Status.Objects.Summary,
			a.Status.Objects.Failed, a.Status.Objects.Held, a.Status.RevisionShort, a.Status.Path)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return o.problems(out)
}

// noteworthy are reasons that a person should see although the condition holds.
func noteworthy(reason string) bool {
	return strings.HasPrefix(reason, "Identity") || reason == v1alpha1.Paused
}

// problems says, add-on by add-on, what is wrong and what to do.
func (o overview) problems(out io.Writer) error {
	var b strings.Builder
	for _, a := range o.AddOns {
		ready := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.Ready)
		if ready == nil || ready.Status == metav1.ConditionTrue {
			continue
		}
		fmt.Fprintf(&b, "\n%s: %s: %s\n", a.Name, ready.Reason, ready.Message)
		for _, f := range a.Status.Failures {
			fmt.Fprintf(&b, "  %s  %s  %s\n    %s\n", f.Reason, f.Object, f.File, f.Message)
		}
		if held := a.Status.Held; held != nil {
			fmt.Fprintf(&b, "  held: %s (%s)\n    %s\n", held.Why, held.Digest, strings.Join(held.Objects, "\n    "))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func labelWords(labels []v1alpha1.Label) string {
	var words []string
	for _, l := range labels {
		words = append(words, fmt.Sprintf("%s=%s (%s)", l.Key, l.Value, l.Origin))
	}
	return strings.Join(words, ", ")
}

func conditionWords(conditions []metav1.Condition, kind string) string {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return "Unknown"
	}
	return fmt.Sprintf("%s (%s): %s", c.Status, c.Reason, c.Message)
}
