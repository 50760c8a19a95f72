package cluster

import (
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Files in a cluster's folder.
const (
	servingFile     = "serving.crt"
	servingKeyFile  = "serving.key"
	caFile          = "ca.crt"
	accountKeyFile  = "serviceaccount.key"
	tokensFile      = "tokens.csv"
	auditPolicyFile = "audit.yaml"
	auditFile       = "audit.log"
	adminFile       = "admin.kubeconfig"
	controllersFile = "controllers.kubeconfig"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules: [{level: Metadata}]
`

// credentials is who may talk to an API server, and how it is known.
type credentials struct {
	// ca is the PEM of the authority that signed the serving certificate.
	ca []byte
	// admin and controllers are bearer tokens.
	admin, controllers string
}

// newCredentials makes all keys and writes what the components read.
func newCredentials(dir string) (credentials, error) {
	serving, servingKey, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"})
	if err != nil {
		return credentials{}, err
	}
	accountKey, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return credentials{}, err
	}
	made := credentials{ca: lastBlock(serving), admin: rand.Text(), controllers: rand.Text()}
	tokens := fmt.Sprintf("%s,admin,admin,system:masters\n%s,system:kube-controller-manager,controllers\n", made.admin, made.controllers)
	for name, content := range map[string][]byte{
		servingFile: serving, servingKeyFile: servingKey, caFile: made.ca,
		accountKeyFile: accountKey, tokensFile: []byte(tokens), auditPolicyFile: []byte(auditPolicy),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return credentials{}, err
		}
	}
	return made, nil
}

// lastBlock gives the authority out of the chain. It alone is published as
// root: kube-controller-manager wants no certificate there that is not an
// authority's.
func lastBlock(chain []byte) []byte {
	var last *pem.Block
	for {
		block, rest := pem.Decode(chain)
		if block == nil {
			return pem.EncodeToMemory(last)
		}
		last, chain = block, rest
	}
}
