package cli

import (
	"fmt"
	"net/netip"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fleetling/fleetling/agent/capi"
)

func capiNewCommand(world World) *cobra.Command {
	var repository, pool, services string
	var avoid []string
	var wish capi.Wish
	cmd := &cobra.Command{
		Use:   "new NAME --label KEY=VALUE ...",
		Short: "Write the entry of a new cluster, with a pod range that no other cluster has",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			wish.Name = args[0]
			var err error
			if wish.Pool, err = prefixOf("pool", pool); err != nil {
				return err
			}
			if wish.Services, err = prefixOf("services", services); err != nil {
				return err
			}
			for _, text := range avoid {
				prefix, err := prefixOf("avoid", text)
				if err != nil {
					return err
				}
				wish.Avoid = append(wish.Avoid, prefix)
			}
			return writeEntry(world, repository, wish)
		},
	}
	cmd.Flags().StringVar(&repository, "repository", ".", "folder of the fleet repository")
	cmd.Flags().StringToStringVar(&wish.Labels, "label", nil, "label of the cluster, KEY=VALUE; repeat it")
	cmd.Flags().StringVar(&pool, "pool", "10.0.0.0/8", "where to look for a pod range")
	cmd.Flags().IntVar(&wish.Bits, "size", 16, "prefix length of the pod range")
	cmd.Flags().StringArrayVar(&avoid, "avoid", nil, "range that is not free, such as one of nodes; repeat it")
	cmd.Flags().StringVar(&services, "services", "10.96.0.0/12", "service range of the cluster; others may have the same")
	return cmd
}

func prefixOf(flag, text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("--%s %q: an address range such as 10.0.0.0/8", flag, text)
	}
	return prefix.Masked(), nil
}

func writeEntry(world World, repository string, wish capi.Wish) error {
	root, err := os.OpenRoot(repository)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	proposal, err := capi.New(root.FS(), wish)
	if err != nil {
		return err
	}
	if err := root.MkdirAll(path.Dir(proposal.File), 0o755); err != nil {
		return err
	}
	// O_EXCL: an entry that somebody wrote meanwhile stays.
	file, err := root.OpenFile(proposal.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(proposal.Data)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("%s is not whole, remove it: %w", proposal.File, err)
	}
	for _, key := range proposal.Undeclared {
		fmt.Fprintf(world.Err, "note: fleetling.yaml does not declare label %s: nothing selects by it\n", key)
	}
	fmt.Fprintf(world.Out, "%s: pods %s. Commit it, signed\n", filepath.Join(repository, filepath.FromSlash(proposal.File)), proposal.Pods)
	return nil
}
