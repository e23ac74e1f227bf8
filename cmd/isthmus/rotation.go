package main

import (
	"context"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/registries"
)

// lookEvery is the time between two looks at the kubeconfigs that the config
// file names.
const lookEvery = 2 * time.Second

// rotation attaches a cluster of the config file anew when its kubeconfig
// changed; the supervisor keeps the old registry until the new one is in sync.
type rotation struct {
	to    *registries.Source
	with  surroundings
	files []*kubeconfigFile
}

// kubeconfigFile is one file that is looked at, by digests of its content.
type kubeconfigFile struct {
	cluster clusterConfig
	used    string // with which the cluster was attached
	seen    string // at the look before
}

// newRotation must be made before the clusters are attached, so that no change
// is missed.
func newRotation(to *registries.Source, with surroundings, clusters []clusterConfig) rotation {
	r := rotation{to: to, with: with}
	taken := map[federation.ClusterID]bool{}
	for _, c := range clusters {
		if c.Provider == federation.Kubernetes && !taken[c.ID] {
			digest, _ := digestOfFile(c.Kubernetes.Kubeconfig) // a missing file is the registry's to report
			r.files = append(r.files, &kubeconfigFile{cluster: c, used: digest, seen: digest})
		}
		taken[c.ID] = true
	}
	return r
}

// run looks until the context ends.
func (r rotation) run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, f := range r.files {
			if err := r.look(f); err != nil {
				return err
			}
		}
	}
}

func (r rotation) look(f *kubeconfigFile) error {
	digest, err := digestOfFile(f.cluster.Kubernetes.Kubeconfig)
	if err != nil || !f.changed(digest) {
		return nil // what runs keeps what it read
	}
	cluster, err := f.cluster.registry(r.with, digest)
	if err != nil {
		return err
	}
	r.with.logger.Info("a kubeconfig has changed", "cluster", f.cluster.ID, "file", f.cluster.Kubernetes.Kubeconfig)
	r.to.Attach(cluster)
	return nil
}

// changed takes a look's digest and tells whether the file is to be used anew:
// it is another, and nobody has written to it since the look before.
func (f *kubeconfigFile) changed(digest string) bool {
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
	return digestOf(data), nil
}
