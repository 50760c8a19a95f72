package pods

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetling/fleetling/e2e/process"
)

// runnable gives the containers of a Pod that are run here.
func runnable(object *corev1.Pod) []corev1.Container {
	if object.Spec.HostNetwork || object.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		return nil
	}
	var containers []corev1.Container
	for _, c := range object.Spec.Containers {
		if known(c.Image) {
			containers = append(containers, c)
		}
	}
	return containers
}

// known says whether the programs of an image are on this machine too.
func known(image string) bool {
	repository, _, _ := strings.Cut(image, "@")
	if colon := strings.LastIndexByte(repository, ':'); colon > strings.LastIndexByte(repository, '/') {
		repository = repository[:colon]
	}
	for _, registry := range []string{"docker.io/", "registry.example.com/"} {
		repository = strings.TrimPrefix(repository, registry)
	}
	return slices.Contains([]string{"alpine/socat", "nicolaka/netshoot"}, repository)
}

// command is a container as a process of this machine.
func (p *pod) command(c corev1.Container) (process.Command, error) {
	line := slices.Concat(c.Command, c.Args)
	if len(line) == 0 {
		return process.Command{}, errors.New("no command: that of the image is not known")
	}
	path, err := exec.LookPath(line[0])
	if err != nil {
		return process.Command{}, err
	}
	env, err := p.environment(c)
	if err != nil {
		return process.Command{}, err
	}
	return process.Command{Path: path, Args: line[1:], Env: env, Namespace: p.namespace.Name(), Contained: true}, nil
}

func (p *pod) environment(c corev1.Container) ([]string, error) {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=/root", "HOSTNAME=" + p.hostname()}
	if len(c.EnvFrom) > 0 {
		return nil, errors.New("envFrom is not supported")
	}
	for _, v := range c.Env {
		value := v.Value
		if v.ValueFrom != nil {
			var err error
			if value, err = p.field(v.ValueFrom.FieldRef); err != nil {
				return nil, fmt.Errorf("variable %s: %w", v.Name, err)
			}
		}
		env = append(env, v.Name+"="+value)
	}
	return env, nil
}

// field is a value of the downward API.
func (p *pod) field(ref *corev1.ObjectFieldSelector) (string, error) {
	if ref == nil {
		return "", errors.New("only a fieldRef is supported")
	}
	switch ref.FieldPath {
	case "metadata.name":
		return p.object.Name, nil
	case "metadata.namespace":
		return p.object.Namespace, nil
	case "metadata.uid":
		return string(p.object.UID), nil
	case "spec.nodeName":
		return p.object.Spec.NodeName, nil
	case "status.podIP", "status.podIPs":
		return p.address.String(), nil
	default:
		return "", fmt.Errorf("fieldRef %s is not supported", ref.FieldPath)
	}
}

func (p *pod) hostname() string {
	if p.object.Spec.Hostname != "" {
		return p.object.Spec.Hostname
	}
	return p.object.Name
}
