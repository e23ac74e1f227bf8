package main

import (
	"context"
	"fmt"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/registries"
)

// folderClusters attaches, replaces and detaches the clusters of the watched
// folder of kubeconfigs.
type folderClusters struct {
	to   *registries.Source
	with surroundings
	hub  federation.ClusterID
	// aliases are those of the folder's clusters, by ID.
	aliases map[federation.ClusterID][]string
	first   func(readable bool) // called after each look; readable: the folder could be read
}

func watchFolder(dir string, h folderClusters) func(context.Context) error {
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
func (h folderClusters) FilesChanged(ctx context.Context, events []kube.FileEvent) {
	readable := true
	for _, e := range events {
		h.take(ctx, e)
		readable = readable && (e.ID != "" || e.Kind != kube.FileProblem)
	}
	h.first(readable)
}

func (h folderClusters) take(ctx context.Context, e kube.FileEvent) {
	id := federation.ClusterID(e.ID)
	log := h.with.logger.With("cluster", e.ID, "files", e.Files)
	spec := federation.ClusterSpec{Provider: federation.Kubernetes, Aliases: federation.NewAliases(h.aliases[id])}
	switch {
	case id == "":
		log.Warn("the folder of kubeconfigs", "problem", e.Problem.String())
	case id == h.hub:
		log.Warn("a kubeconfig is skipped: the hub itself has this ID")
	case e.Kind == kube.FileGone:
		log.Info("detaching a cluster: its kubeconfig is gone")
		h.to.Detach(id)
		if err := h.with.known.forget(ctx, id); err != nil {
			log.Warn("the store still knows who a detached cluster was", "err", err)
		}
	case e.Kind == kube.FileProblem:
		log.Warn("a kubeconfig cannot be used", "problem", e.Problem.String())
		h.to.Refuse(id, spec, "--kubeconfig-dir: "+e.Problem.String())
	default:
		h.attach(id, spec, e)
	}
}

func (h folderClusters) attach(id federation.ClusterID, spec federation.ClusterSpec, e kube.FileEvent) {
	credentials, err := kube.Parse(e.Content, h.with.kubeconfigRules(""))
	if err != nil {
		h.to.Refuse(id, spec, fmt.Sprintf("--kubeconfig-dir: %s: %s", strings.Join(e.Files, ", "), err))
		return
	}
	h.to.Attach(registries.Cluster{
		ID: id, Spec: spec, Fingerprint: credentials.Fingerprint(),
		Open: h.with.remember(id, func(known federation.Identity) (registries.Registry, error) {
			return h.with.followKubernetes(clusterConfig{ID: id, Provider: federation.Kubernetes}, credentials, known)
		}),
	})
}
