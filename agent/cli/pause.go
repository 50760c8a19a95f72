package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetling/fleetling/agent"
	"github.com/fleetling/fleetling/agent/api/v1alpha1"
)

// pauseManager owns the pause, and nothing that is the agent's.
const pauseManager = "fleetling-pause"

func pauseCommand(world World) *cobra.Command {
	var kubeconfig, reason string
	var length time.Duration
	var end bool
	cmd := &cobra.Command{
		Use:   "pause (--for DURATION --reason TEXT | --end)",
		Short: "Have the agent look and not touch for a while: nothing is applied, repaired or deleted",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkPause(end, length, reason); err != nil {
				return err
			}
			c, err := membersClient(kubeconfig)
			if err != nil {
				return err
			}
			if end {
				return endPause(cmd.Context(), c, world)
			}
			return setPause(cmd.Context(), c, world, time.Now().Add(length), reason)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig (default: as kubectl)")
	cmd.Flags().DurationVar(&length, "for", 0, "how long, such as 2h; at most 72h; it ends by itself")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who wonder")
	cmd.Flags().BoolVar(&end, "end", false, "end the pause now")
	return cmd
}

func checkPause(end bool, length time.Duration, reason string) error {
	switch {
	case end && (length != 0 || reason != ""):
		return errors.New("--end stands alone")
	case end:
		return nil
	case length <= 0 || length > agent.MaxPause:
		return fmt.Errorf("--for %s: more than 0, and at most %s", length, agent.MaxPause)
	case reason == "":
		return errors.New("--reason: say why, for those who wonder")
	}
	return nil
}

func setPause(ctx context.Context, c client.Client, world World, until time.Time, reason string) error {
	text := until.UTC().Truncate(time.Second).Format(time.RFC3339)
	member := memberObject()
	member.Object["spec"] = map[string]any{"pause": map[string]any{"until": text, "reason": reason}}
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(member), client.ForceOwnership, client.FieldOwner(pauseManager))
	if err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	fmt.Fprintf(world.Out, "paused until %s; to end it before: fleetling pause --end\n", text)
	return nil
}

// endPause takes the pause away, whoever has set it.
func endPause(ctx context.Context, c client.Client, world World) error {
	err := c.Patch(ctx, memberObject(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"pause":null}}`)), client.FieldOwner(pauseManager))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("end the pause: %w", err)
	}
	fmt.Fprintln(world.Out, "not paused")
	return nil
}

func memberObject() *unstructured.Unstructured {
	member := &unstructured.Unstructured{Object: map[string]any{}}
	member.SetGroupVersionKind(schema.GroupVersionKind{Group: v1alpha1.Group, Version: v1alpha1.Version, Kind: "Member"})
	member.SetName(v1alpha1.Self)
	return member
}
