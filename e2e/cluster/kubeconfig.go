package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenSeconds is how long a ServiceAccount's token lasts: longer than any
// suite, and than a demo that somebody keeps for a day.
const tokenSeconds = 24 * 60 * 60

// Kubeconfig is the administrator's.
func (c *Cluster) Kubeconfig() ([]byte, error) { return c.kubeconfig("admin", c.credentials.admin) }

// KubeconfigFile is the path of the administrator's.
func (c *Cluster) KubeconfigFile() string { return c.path(adminFile) }

// ServiceAccountKubeconfig is one with a token of a ServiceAccount, which must
// exist: whoever uses it has the rights that RBAC gives to that account.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) ([]byte, error) {
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("cluster %s: token of %s/%s: %w", c.name, namespace, name, err)
	}
	return c.kubeconfig(namespace+"/"+name, answer.Status.Token)
}

// ServiceAccountUser is the name that requests of a ServiceAccount have in
// the audit log.
func ServiceAccountUser(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

func (c *Cluster) writeKubeconfigs() error {
	admin, err := c.Kubeconfig()
	if err != nil {
		return err
	}
	controllers, err := c.kubeconfig("controllers", c.credentials.controllers)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(c.path(adminFile), admin, 0o600),
		os.WriteFile(c.path(controllersFile), controllers, 0o600))
}

func (c *Cluster) kubeconfig(user, token string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[c.name] = &clientcmdapi.Cluster{Server: c.Server(), CertificateAuthorityData: c.credentials.ca}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[c.name] = &clientcmdapi.Context{Cluster: c.name, AuthInfo: user}
	config.CurrentContext = c.name
	return clientcmd.Write(*config)
}
