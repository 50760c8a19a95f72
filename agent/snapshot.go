package agent

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/fleetling/fleetling/apply"
)

const (
	snapshotPrefix = "fleetling-snapshot-"
	// snapshotLabel holds the first digits of the digest of the whole.
	snapshotLabel = "fleetling.dev/snapshot"
	snapshotKey   = "part"
	partBytes     = 512 << 10
	maxParts      = 16 // 8 MiB
	// maxUnpacked bounds what a snapshot may unpack to.
	maxUnpacked = 256 << 20
)

var (
	errSnapshotTooLarge = errors.New("larger than 8 MiB when compressed: it is not kept, so a new Pod can't repair drift while Git is away")
	errSnapshotMissing  = errors.New("the snapshot that the pin names is not there, or not whole")
)

// snapshots keeps what is rolled out in Secrets, so that a new Pod on a new node
// can repair drift while Git is away. Its digest is in the pin: what does not
// hash to it is not used.
//
// What is kept is the rendered objects and not the files they come from: an
// add-on whose newest revision can't be rendered stays repaired as it was, and
// nothing has to be rendered to begin.
type snapshots struct {
	client typedv1.SecretInterface
}

// pack encodes contents; equal contents give equal bytes.
func pack(contents []content) (data []byte, digest string, err error) {
	stored := make([]content, 0, len(contents))
	for _, c := range contents {
		stored = append(stored, c.stored())
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if err := json.NewEncoder(w).Encode(stored); err != nil {
		return nil, "", fmt.Errorf("encode snapshot: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, "", fmt.Errorf("encode snapshot: %w", err)
	}
	return b.Bytes(), digestOf(b.Bytes()), nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// unpack is the inverse of pack, for bytes that hash to the digest.
func unpack(data []byte, digest string) ([]content, error) {
	if digestOf(data) != digest {
		return nil, errSnapshotMissing
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("decode snapshot: %w", err)
	}
	var contents []content
	if err := json.NewDecoder(io.LimitReader(r, maxUnpacked)).Decode(&contents); err != nil {
		return nil, fmt.Errorf("decode snapshot: %w", err)
	}
	for i, c := range contents {
		if contents[i], err = c.restored(); err != nil {
			return nil, fmt.Errorf("decode snapshot: %w", err)
		}
	}
	return contents, nil
}

// save writes a snapshot beside the one that the pin names now: until the pin
// names the new one, the old one counts.
func (s snapshots) save(ctx context.Context, data []byte, digest, current string) error {
	if len(data) > partBytes*maxParts {
		return errSnapshotTooLarge
	}
	existing, err := s.list(ctx)
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, secret := range existing {
		taken[secret.Name] = secret.Labels[snapshotLabel] == labelOf(current)
	}
	n := 0
	for part := range slices.Chunk(data, partBytes) {
		for taken[snapshotPrefix+strconv.Itoa(n)] {
			n++
		}
		if err := s.write(ctx, existing, snapshotPrefix+strconv.Itoa(n), labelOf(digest), part); err != nil {
			return fmt.Errorf("keep snapshot: %w", err)
		}
		n++
	}
	return nil
}

func (s snapshots) write(ctx context.Context, existing []corev1.Secret, name, label string, part []byte) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{snapshotLabel: label}},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{snapshotKey: part},
	}
	i := slices.IndexFunc(existing, func(e corev1.Secret) bool { return e.Name == name })
	if i < 0 {
		_, err := s.client.Create(ctx, secret, metav1.CreateOptions{FieldManager: apply.Manager})
		return err
	}
	secret.ResourceVersion = existing[i].ResourceVersion
	_, err := s.client.Update(ctx, secret, metav1.UpdateOptions{FieldManager: apply.Manager})
	return err
}

// load reads the snapshot that hashes to digest.
func (s snapshots) load(ctx context.Context, digest string) ([]content, error) {
	existing, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	var data []byte
	for _, secret := range existing {
		if secret.Labels[snapshotLabel] == labelOf(digest) {
			data = append(data, secret.Data[snapshotKey]...)
		}
	}
	return unpack(data, digest)
}

// sweep deletes the parts of all other snapshots.
func (s snapshots) sweep(ctx context.Context, digest string) error {
	existing, err := s.list(ctx)
	if err != nil {
		return err
	}
	for _, secret := range existing {
		if secret.Labels[snapshotLabel] == labelOf(digest) {
			continue
		}
		if err := s.client.Delete(ctx, secret.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete an old snapshot: %w", err)
		}
	}
	return nil
}

// list gives the parts in the order of their numbers.
func (s snapshots) list(ctx context.Context) ([]corev1.Secret, error) {
	list, err := s.client.List(ctx, metav1.ListOptions{LabelSelector: snapshotLabel})
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Secret) int { return partNumber(a.Name) - partNumber(b.Name) })
	return list.Items, nil
}

func partNumber(name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, snapshotPrefix))
	if err != nil {
		return -1
	}
	return n
}

// labelOf shortens a digest to what a label value may hold.
func labelOf(digest string) string {
	return strings.TrimPrefix(digest, "sha256:")[:min(32, len(strings.TrimPrefix(digest, "sha256:")))]
}
