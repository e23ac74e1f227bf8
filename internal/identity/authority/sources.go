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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"isthmus.dev/isthmus/internal/keyfile"
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

// Gate proves that the cluster that answers is the one that is known; the
// cluster's registry does. Enter blocks until it is. What is read from then on
// counts if prove returns nil afterwards.
type Gate interface {
	Enter(ctx context.Context) (lost <-chan struct{}, prove func(context.Context) error, err error)
}

// proofWithin is how long a cluster may take to prove that it is the known one.
const proofWithin = 10 * time.Second

// Secret is a source in a Kubernetes Secret of an attached cluster. It may be
// used by several goroutines.
type Secret struct {
	namespace, name string

	mu     sync.Mutex
	client kubernetes.Interface // nil: the cluster is not attached
	gate   Gate
}

// NewSecret is without a cluster yet.
func NewSecret(namespace, name string) *Secret { return &Secret{namespace: namespace, name: name} }

// Attach lets the Secret be read by the client until detach is called, or by a
// later one, while the gate says that the cluster is the known one.
func (s *Secret) Attach(client kubernetes.Interface, gate Gate) (detach func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client, s.gate = client, gate
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.client == client {
			s.client = nil
		}
	}
}

// Read is part of Source.
func (s *Secret) Read(ctx context.Context) (Files, error) {
	s.mu.Lock()
	client, gate := s.client, s.gate
	s.mu.Unlock()
	if client == nil {
		return Files{}, fmt.Errorf("the cluster with the Secret %s/%s is not attached", s.namespace, s.name)
	}
	ctx, cancel := context.WithTimeout(ctx, proofWithin)
	defer cancel()
	_, prove, err := gate.Enter(ctx)
	if err != nil {
		return Files{}, fmt.Errorf("the cluster with the Secret %s/%s did not prove that it is the known one: %w", s.namespace, s.name, err)
	}
	found, err := client.CoreV1().Secrets(s.namespace).Get(ctx, s.name, metav1.GetOptions{})
	if unproven := prove(ctx); unproven != nil {
		return Files{}, fmt.Errorf("the cluster with the Secret %s/%s did not prove that it is the known one: %w", s.namespace, s.name, unproven)
	}
	switch {
	case apierrors.IsNotFound(err):
		return Files{}, fmt.Errorf("there is no Secret %s/%s", s.namespace, s.name)
	case err != nil:
		return Files{}, fmt.Errorf("reading the Secret %s/%s: %w", s.namespace, s.name, err)
	}
	return Files{
		Certificate: found.Data[certificatePart], Key: found.Data[keyPart], Root: found.Data[rootPart], Chain: found.Data[chainPart],
	}, nil
}
