package capi

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/render"
)

// Names in our manifests.
const (
	agentNamespace = "fleetling-system"
	agentName      = "fleetling"
	containerName  = "agent"
	configName     = "fleetling-config"
	configKey      = "config.yaml"
	signersName    = "fleetling-signers"
	identityName   = "fleetling-identity"
	identityKey    = "identity.yaml"
	apiServerKey   = "api-server"
	gitSecretName  = "fleetling-git"
	gitFolder      = "/etc/fleetling/git"
	configVersion  = "config.fleetling.dev/v1alpha1"

	// placeholders of manifests/, which do nothing yet.
	exampleImage = "fleetling"
	exampleURL   = "https://git.example.com/fleet.git"
)

// Load renders our manifests, the root of fsys, with their component birth.
func Load(fsys fs.FS) ([]Object, error) {
	result, err := render.New(sources.DefaultLimits()).Render(fsys, render.Request{Path: ".", Components: []string{"birth"}})
	if err != nil {
		return nil, err
	}
	objects := make([]Object, len(result.Objects))
	for i, o := range result.Objects {
		objects[i] = Object{Unstructured: o.Unstructured, File: o.File}
	}
	return objects, nil
}

// Install is what differs between fleets in our manifests. Empty fields leave
// them as they are; placeholders that stay are refused.
type Install struct {
	// Image is a reference to pull the agent by.
	Image string
	// Config is an AgentConfiguration in YAML.
	Config []byte
	// URL and Branch replace those of the AgentConfiguration.
	URL, Branch string
	// Signers are the first signers' files by name.
	Signers map[string]string
}

// Into gives manifests as they are to be installed, in the order in which they
// can be applied. manifests themselves stay as they are.
func (i Install) Into(manifests []Object) ([]Object, error) {
	made := make([]Object, len(manifests))
	for at, o := range manifests {
		made[at] = Object{o.DeepCopy(), o.File, o.Line}
	}
	slices.SortStableFunc(made, func(a, b Object) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.GetKind(), b.GetKind()),
			cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	if err := errors.Join(i.setImage(made), i.setConfig(made), i.setSigners(made)); err != nil {
		return nil, err
	}
	return made, nil
}

// rank puts first what others need.
func rank(o Object) int {
	order := []string{"Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding", "ConfigMap", "Secret"}
	if at := slices.Index(order, o.GetKind()); at >= 0 {
		return at
	}
	return len(order)
}

func find(objects []Object, group, kind, name string) (Object, error) {
	for _, o := range objects {
		if o.is(group, kind) && o.GetNamespace() == agentNamespace && o.GetName() == name {
			return o, nil
		}
	}
	return Object{}, fmt.Errorf("the manifests have no %s/%s/%s: they are not fleetling's", kind, agentNamespace, name)
}

func (i Install) setImage(objects []Object) error {
	deployment, err := find(objects, "apps", "Deployment", agentName)
	if err != nil {
		return err
	}
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(deployment.Object, path...)
	if err != nil {
		return fmt.Errorf("%s: %w", deployment, err)
	}
	for _, c := range containers {
		container, _ := c.(map[string]any)
		if container["name"] != containerName {
			continue
		}
		container["image"] = cmp.Or[any](orNil(i.Image), container["image"])
		if container["image"] == exampleImage || container["image"] == nil {
			return errors.New("no image to pull: name one, such as registry.example.com/fleetling:1 (--image)")
		}
		return unstructured.SetNestedSlice(deployment.Object, containers, path...)
	}
	return fmt.Errorf("%s has no container %q: it is not fleetling's", deployment, containerName)
}

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// setConfig also says what a configuration leaves open: listeners are off, for a
// port would be one of the node's, and credentials are where our Deployment
// mounts them.
func (i Install) setConfig(objects []Object) error {
	holder, err := find(objects, "", "ConfigMap", configName)
	if err != nil {
		return err
	}
	text := i.Config
	if text == nil {
		held, _, _ := unstructured.NestedString(holder.Object, "data", configKey)
		text = []byte(held)
	}
	config, err := decodeConfig(text)
	if err != nil {
		return err
	}
	source := section(config, "source")
	source["url"] = cmp.Or[any](orNil(i.URL), source["url"])
	source["branch"] = cmp.Or[any](orNil(i.Branch), source["branch"])
	source["credentials"] = cmp.Or[any](source["credentials"], gitFolder)
	listen := section(config, "listen")
	for _, listener := range []string{"metrics", "health"} {
		listen[listener] = cmp.Or[any](listen[listener], "0")
	}
	switch {
	case source["url"] == exampleURL || source["url"] == nil:
		return errors.New("no repository to pull: name its URL (--url), or give a configuration (--config)")
	case source["branch"] == nil:
		return errors.New("no branch to pull: name it, such as refs/heads/main (--branch)")
	}
	written, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("%s: %w", configKey, err)
	}
	return unstructured.SetNestedField(holder.Object, string(written), "data", configKey)
}

func section(config map[string]any, name string) map[string]any {
	found, ok := config[name].(map[string]any)
	if !ok {
		found = map[string]any{}
		config[name] = found
	}
	return found
}

func decodeConfig(text []byte) (map[string]any, error) {
	var config map[string]any
	if err := yaml.UnmarshalStrict(text, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", configKey, err)
	}
	if config["apiVersion"] != configVersion || config["kind"] != "AgentConfiguration" {
		return nil, fmt.Errorf("%s: not an AgentConfiguration of %s", configKey, configVersion)
	}
	return config, nil
}

// Config gives the configuration file of the installed objects.
func Config(installed []Object) ([]byte, error) {
	holder, err := find(installed, "", "ConfigMap", configName)
	if err != nil {
		return nil, err
	}
	text, _, _ := unstructured.NestedString(holder.Object, "data", configKey)
	return []byte(text), nil
}

// Source tells which repository and branch the installed objects pull.
func Source(installed []Object) (url, branch string, err error) {
	text, err := Config(installed)
	if err != nil {
		return "", "", err
	}
	config, err := decodeConfig(text)
	if err != nil {
		return "", "", err
	}
	source := section(config, "source")
	url, _ = source["url"].(string)
	branch, _ = source["branch"].(string)
	return url, branch, nil
}

func (i Install) setSigners(objects []Object) error {
	holder, err := find(objects, "", "ConfigMap", signersName)
	if err != nil {
		return err
	}
	if len(i.Signers) > 0 {
		return unstructured.SetNestedStringMap(holder.Object, i.Signers, "data")
	}
	if held, _, _ := unstructured.NestedMap(holder.Object, "data"); len(held) == 0 {
		return errors.New("no first signer: give the folder with their keys (--signers)")
	}
	return nil
}
