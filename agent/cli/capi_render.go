package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetling/fleetling/agent/capi"
)

// renderFlags are those of `capi render`.
type renderFlags struct {
	repository, manifests      string
	image, config, url, branch string
	signers                    string
	credentials, withSecrets   string
	plain                      bool
	target                     capi.Target
}

func capiRenderCommand(world World) *cobra.Command {
	var f renderFlags
	cmd := &cobra.Command{
		Use:   "render [CLUSTER...]",
		Short: "Print the objects for the management cluster: the agent, and each cluster's identity",
		Long: "Print the objects for the management cluster: one ClusterResourceSet with the agent, and one\n" +
			"per cluster with its identity. Without names: all entries with label " + capi.ClusterLabel + ".",
		RunE: func(_ *cobra.Command, names []string) error {
			if (f.credentials == "") != (f.withSecrets == "") {
				return errors.New("--credentials and --with-secrets go together: where credentials come from, and the file for the objects that hold them")
			}
			if f.plain && (len(names) != 1 || f.withSecrets != "") {
				return errors.New("--plain prints one cluster's own objects, without secrets: name one cluster")
			}
			return f.render(world, names)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.repository, "repository", ".", "folder of the fleet repository")
	flags.StringVar(&f.manifests, "manifests", "manifests", "folder manifests of a checkout of fleetling; or a file that `kubectl kustomize` printed")
	flags.StringVar(&f.image, "image", "", "image of the agent")
	flags.StringVar(&f.config, "config", "", "file with an AgentConfiguration (default: that of the manifests)")
	flags.StringVar(&f.url, "url", "", "URL of the fleet repository, as the clusters reach it")
	flags.StringVar(&f.branch, "branch", "", "full ref name of the branch")
	flags.StringVar(&f.signers, "signers", "", "folder of the first signers' keys (default: signers of the repository, where --manifests is a folder)")
	flags.StringVar(&f.target.APIVersion, "api-version", "v1beta2", "version of addons.cluster.x-k8s.io: v1beta2 or v1beta1")
	flags.StringVar(&f.target.Namespace, "namespace", "default", "namespace of the Clusters whose entry names none")
	flags.BoolVar(&f.plain, "plain", false, "print one cluster's objects as they are, for manifest folders of k3s and RKE2 and for Talos")
	flags.StringVar(&f.credentials, "credentials", "", "folder of credentials: git/, clusters/NAME/git/, clusters/NAME/member-key")
	flags.StringVar(&f.withSecrets, "with-secrets", "", "file to write the objects with credentials to, mode 0600")
	return cmd
}

// render makes everything before it writes anything.
func (f renderFlags) render(world World, names []string) error {
	entries, leftOut, err := f.entries(names)
	if err != nil {
		return err
	}
	installed, err := f.installed()
	if err != nil {
		return err
	}
	text, err := f.bundle(installed, entries)
	if err != nil {
		return err
	}
	if f.withSecrets != "" {
		if err := f.secrets(installed, entries); err != nil {
			return err
		}
	}
	if len(leftOut) > 0 {
		fmt.Fprintf(world.Err, "note: no label %s, left out: %s\n", capi.ClusterLabel, strings.Join(leftOut, ", "))
	}
	_, err = world.Out.Write(text)
	return err
}

func (f renderFlags) bundle(installed []capi.Object, entries []capi.Entry) ([]byte, error) {
	objects, err := []capi.Object(nil), error(nil)
	if f.plain {
		objects, err = capi.Plain(installed, entries[0], f.target.ClusterSet)
	} else {
		objects, err = capi.Bundle(installed, entries, f.target)
	}
	if err != nil {
		return nil, err
	}
	return capi.Text(objects)
}
