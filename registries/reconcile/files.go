package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
)

// lookEvery is the time between two looks at the kubeconfigs that the config file
// names.
const lookEvery = 2 * time.Second

// Kubeconfig is a file that a cluster of the config file names.
type Kubeconfig struct {
	ID   federation.ClusterID
	Path string
	// Claim is what the config file says about the cluster with a file of that digest.
	Claim func(digest string) (Claim, error)

	used string // digest with which the cluster was attached
	seen string // at the look before
}

// Kubeconfigs looks at the files. It must be made before the clusters are attached,
// so that no change is missed.
func Kubeconfigs(files []*Kubeconfig) []*Kubeconfig {
	for _, f := range files {
		digest, _ := digestOfFile(f.Path) // a missing file is the registry's to report
		f.used, f.seen = digest, digest
	}
	return files
}

// FollowKubeconfigs reattaches a cluster of the config file when its kubeconfig
// changed; the supervisor keeps the old registry until the new one is in sync.
func (r *Reconciler) FollowKubeconfigs(files []*Kubeconfig) func(context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			for _, f := range files {
				if err := r.reload(f); err != nil {
					return err
				}
			}
		}
	}
}

func (r *Reconciler) reload(f *Kubeconfig) error {
	digest, err := digestOfFile(f.Path)
	if err != nil || !f.changed(digest) {
		return nil // what runs keeps what it read
	}
	claim, err := f.Claim(digest)
	if err != nil {
		return err
	}
	r.o.Logger.Info("a kubeconfig has changed", "cluster", f.ID, "file", f.Path)
	r.post(func(in *Inputs) {
		for i, c := range in.Config {
			if c.ID == f.ID {
				in.Config[i] = claim
				return
			}
		}
	})
	return nil
}

// changed takes a look's digest and reports whether the file is to be used again: it
// changed, and was not written to since the look before.
func (f *Kubeconfig) changed(digest string) bool {
	settled := digest == f.seen
	f.seen = digest
	if !settled || digest == f.used {
		return false
	}
	f.used = digest
	return true
}

func digestOfFile(path string) (string, error) {
	data, err := kube.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
