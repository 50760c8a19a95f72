package birth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sync brings all volumes to what their objects are.
func (p *Pod) sync(ctx context.Context) error {
	var problems []error
	for _, mount := range p.container().VolumeMounts {
		for _, volume := range p.object.Spec.Volumes {
			if volume.Name != mount.Name {
				continue
			}
			held, err := p.content(ctx, volume.VolumeSource)
			if err == nil {
				err = held.write(p.inside(mount.MountPath))
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("volume %s: %w", volume.Name, err))
			}
		}
	}
	return errors.Join(problems...)
}

func (p *Pod) inside(path string) string { return filepath.Join(p.root, path) }

// content gives what a volume holds. An optional object that is not there is no
// file.
func (p *Pod) content(ctx context.Context, v corev1.VolumeSource) (content, error) {
	core := p.kubelet.client.CoreV1()
	made := content{group: int(*p.object.Spec.SecurityContext.FSGroup)}
	switch {
	case v.EmptyDir != nil:
		return made, nil
	case v.ConfigMap != nil:
		made.mode = os.FileMode(*v.ConfigMap.DefaultMode)
		cm, err := core.ConfigMaps(p.object.Namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		made.files = bytesOf(cm.Data)
		return made, absent(err, v.ConfigMap.Optional)
	case v.Secret != nil:
		made.mode = os.FileMode(*v.Secret.DefaultMode)
		secret, err := core.Secrets(p.object.Namespace).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
		made.files = map[string][]byte{}
		maps.Copy(made.files, secret.Data)
		return made, absent(err, v.Secret.Optional)
	case v.Projected != nil:
		var err error
		made.mode = 0o640
		made.files, err = p.account(ctx, v.Projected)
		return made, err
	}
	return content{}, errors.New("a kind of volume that is not supported")
}

func absent(err error, optional *bool) error {
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil
	}
	return err
}

func bytesOf(data map[string]string) map[string][]byte {
	made := map[string][]byte{}
	for name, text := range data {
		made[name] = []byte(text)
	}
	return made
}

// account gives what the ServiceAccount admission plugin has projected. The
// token is made once: it lasts longer than any suite.
func (p *Pod) account(ctx context.Context, v *corev1.ProjectedVolumeSource) (map[string][]byte, error) {
	made := map[string][]byte{}
	for _, source := range v.Sources {
		switch {
		case source.ServiceAccountToken != nil:
			token, err := p.token(ctx)
			if err != nil {
				return nil, err
			}
			made[source.ServiceAccountToken.Path] = token
		case source.ConfigMap != nil:
			cm, err := p.kubelet.client.CoreV1().ConfigMaps(p.object.Namespace).Get(ctx, source.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			for _, item := range source.ConfigMap.Items {
				made[item.Path] = []byte(cm.Data[item.Key])
			}
		case source.DownwardAPI != nil:
			for _, item := range source.DownwardAPI.Items {
				if item.FieldRef == nil || item.FieldRef.FieldPath != "metadata.namespace" {
					return nil, errors.New("only metadata.namespace is supported")
				}
				made[item.Path] = []byte(p.object.Namespace)
			}
		}
	}
	return made, nil
}

func (p *Pod) token(ctx context.Context) ([]byte, error) {
	const file = "token-of-the-pod"
	if held, err := os.ReadFile(filepath.Join(p.root, file)); err == nil {
		return held, nil
	}
	seconds := int64((24 * time.Hour).Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.object.Name, UID: p.object.UID},
	}}
	answer, err := p.kubelet.client.CoreV1().ServiceAccounts(p.object.Namespace).CreateToken(ctx, p.object.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	token := []byte(answer.Status.Token)
	return token, os.WriteFile(filepath.Join(p.root, file), token, 0o600)
}
