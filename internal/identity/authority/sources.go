package authority

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"isthmus.dev/isthmus/internal/keyfile"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// The names of an intermediate's parts, as Istio's cacerts has them.
const (
	certificatePart = "ca-cert.pem"
	keyPart         = "ca-key.pem"
	rootPart        = "root-cert.pem"
	chainPart       = "cert-chain.pem" // may be missing
)

// Folder is a source of four files.
type Folder string

// Read is part of Source.
func (f Folder) Read(context.Context) (Files, error) {
	var parts [4][]byte
	for i, name := range []string{certificatePart, keyPart, rootPart, chainPart} {
		var err error
		parts[i], err = f.part(name)
		if err != nil && (name != chainPart || !errors.Is(err, os.ErrNotExist)) {
			return Files{}, err
		}
	}
	return Files{Certificate: parts[0], Key: parts[1], Root: parts[2], Chain: parts[3]}, nil
}

func (f Folder) part(name string) ([]byte, error) {
	file, err := os.Open(filepath.Join(string(f), name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", file.Name())
	}
	if err := keyfile.Check(info); err != nil && name == keyPart {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxBundle+1))
	if err == nil && len(text) > maxBundle {
		err = fmt.Errorf("%s has more than %d bytes", file.Name(), maxBundle)
	}
	return text, err
}

// proofWithin is how long a cluster may take to prove that it is the known one.
const proofWithin = 10 * time.Second

// Secret is a source in a Kubernetes Secret of an attached cluster. It may be
// used by several goroutines.
type Secret struct {
	namespace, name string

	mu      sync.Mutex
	cluster *listwatch.Cluster // nil: it is not attached
}

// NewSecret is without a cluster yet.
func NewSecret(namespace, name string) *Secret { return &Secret{namespace: namespace, name: name} }

// Attach lets the Secret be read from the cluster, while that proves to be the known
// one, until detach is called or a later one is attached.
func (s *Secret) Attach(cluster *listwatch.Cluster) (detach func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cluster = cluster
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.cluster == cluster {
			s.cluster = nil
		}
	}
}

// Read is part of Source.
func (s *Secret) Read(ctx context.Context) (Files, error) {
	s.mu.Lock()
	cluster := s.cluster
	s.mu.Unlock()
	if cluster == nil {
		return Files{}, fmt.Errorf("the cluster with the Secret %s/%s is not attached", s.namespace, s.name)
	}
	ctx, cancel := context.WithTimeout(ctx, proofWithin)
	defer cancel()
	var found *corev1.Secret
	err := cluster.Read(ctx, func(ctx context.Context, client clients.Interface) (err error) {
		found, err = client.CoreV1().Secrets(s.namespace).Get(ctx, s.name, metav1.GetOptions{})
		return err
	})
	var unproven listwatch.UnprovenError
	switch {
	case errors.As(err, &unproven):
		return Files{}, fmt.Errorf("the cluster with the Secret %s/%s did not prove that it is the known one: %w",
			s.namespace, s.name, unproven.Why)
	case apierrors.IsNotFound(err):
		return Files{}, fmt.Errorf("there is no Secret %s/%s", s.namespace, s.name)
	case err != nil:
		return Files{}, fmt.Errorf("reading the Secret %s/%s: %w", s.namespace, s.name, err)
	}
	return Files{
		Certificate: found.Data[certificatePart], Key: found.Data[keyPart], Root: found.Data[rootPart], Chain: found.Data[chainPart],
	}, nil
}
