package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/filewatch"
	"isthmus.dev/isthmus/internal/kube"
)

// fileInterval is the time between two reads of the kubeconfigs that the config file
// names.
const fileInterval = 2 * time.Second

// Kubeconfig is a file that a cluster of the config file names.
type Kubeconfig struct {
	ID   federation.ClusterID
	Path string
	// Claim is what the config file says about the cluster with a file of that digest.
	Claim func(digest string) (Claim, error)

	used   string // digest with which the cluster was attached
	read   string // digest of the read before
	failed error  // why the newest content is not used
}

// Kubeconfigs reads the files. It must be called before the clusters are attached, so
// that no change is missed.
func Kubeconfigs(files []*Kubeconfig) []*Kubeconfig {
	for _, f := range files {
		digest, _ := digestOfFile(f.Path) // a missing file is the registry's to report
		f.used, f.read = digest, digest
	}
	return files
}

// FollowKubeconfigs reattaches a cluster of the config file when its kubeconfig
// changed; the supervisor keeps the old registry until the new one is in sync.
func (r *Reconciler) FollowKubeconfigs(files []*Kubeconfig) func(context.Context) error {
	return func(ctx context.Context) error {
		filewatch.Poll(ctx, fileInterval, func() error {
			var failed []error
			for _, f := range files {
				failed = append(failed, r.reload(f))
			}
			return errors.Join(failed...)
		}, filewatch.Logged(r.o.Logger, "a changed kubeconfig is not used", "changed kubeconfigs are used again"))
		return nil
	}
}

func (r *Reconciler) reload(f *Kubeconfig) error {
	digest, err := digestOfFile(f.Path)
	if err != nil || !f.changed(digest) {
		return f.failed // the registry keeps what it read
	}
	claim, err := f.Claim(digest)
	if err != nil {
		f.failed = fmt.Errorf("cluster %s: %s: %w", f.ID, f.Path, err)
		return f.failed
	}
	f.used, f.failed = digest, nil
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

// changed reports whether the cluster must be attached again: the file changed, and was
// not written to since the read before.
func (f *Kubeconfig) changed(digest string) bool {
	settled := digest == f.read
	f.read = digest
	if settled && digest == f.used {
		f.failed = nil
	}
	return settled && digest != f.used
}

func digestOfFile(path string) (string, error) {
	data, err := kube.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
