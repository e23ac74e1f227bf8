package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/registries"
)

// folderClusters attaches, replaces and detaches the clusters of the watched
// folder of kubeconfigs.
type folderClusters struct {
	to     *registries.Supervisor
	with   surroundings
	others map[federation.ClusterID]bool // IDs that the config file has taken
	first  func()                        // called after the first look
}

func watchFolder(dir string, h folderClusters, looked chan<- struct{}) func(context.Context) error {
	var once sync.Once
	h.first = func() { once.Do(func() { close(looked) }) }
	folder := kube.WatchDir(dir, kube.WatchOptions{
		Check:  func(content []byte) error { _, err := kube.Parse(content, h.with.kubeconfigRules("")); return err },
		Logger: h.with.logger,
	})
	return func(ctx context.Context) error {
		if err := folder.Run(ctx, h); ctx.Err() == nil {
			return err
		}
		return nil
	}
}

// FilesChanged is part of kube.FileHandler.
func (h folderClusters) FilesChanged(_ context.Context, events []kube.FileEvent) {
	for _, e := range events {
		h.take(e)
	}
	h.first()
}

func (h folderClusters) take(e kube.FileEvent) {
	id := federation.ClusterID(e.ID)
	log := h.with.logger.With("cluster", e.ID, "files", e.Files)
	spec := federation.ClusterSpec{Provider: federation.Kubernetes}
	switch {
	case id == "":
		log.Warn("the folder of kubeconfigs", "problem", e.Problem.String())
	case h.others[id]:
		h.duplicate(id, e)
	case e.Kind == kube.FileGone:
		log.Info("detaching a cluster: its kubeconfig is gone")
		h.to.Detach(id)
	case e.Kind == kube.FileProblem:
		log.Warn("a kubeconfig cannot be used", "problem", e.Problem.String())
		h.to.Refuse(id, spec, "--kubeconfig-dir: "+e.Problem.String())
	default:
		h.attach(id, spec, e)
	}
}

func (h folderClusters) duplicate(id federation.ClusterID, e kube.FileEvent) {
	if e.Kind == kube.FileGone {
		h.to.Problem(id, "kubeconfig-dir", nil)
		return
	}
	h.with.logger.Warn("a kubeconfig is skipped: the config file or the hub itself has this ID", "cluster", id, "files", e.Files)
	h.to.Problem(id, "kubeconfig-dir", duplicateID(id, "--kubeconfig-dir", "the config file or the hub itself"))
}

func (h folderClusters) attach(id federation.ClusterID, spec federation.ClusterSpec, e kube.FileEvent) {
	credentials, err := kube.Parse(e.Content, h.with.kubeconfigRules(""))
	if err != nil {
		h.to.Refuse(id, spec, fmt.Sprintf("--kubeconfig-dir: %s: %s", strings.Join(e.Files, ", "), err))
		return
	}
	h.to.Attach(registries.Cluster{
		ID: id, Spec: spec, Fingerprint: credentials.Fingerprint(),
		Open: func(known federation.Identity) (registries.Registry, error) {
			return h.with.followKubernetes(clusterConfig{ID: id, Provider: federation.Kubernetes}, credentials, known)
		},
	})
}
