package reconcile

import (
	"context"
	"fmt"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/registries"
)

// Folder is the source of clusters that are kubeconfigs in a watched folder.
type Folder struct {
	Dir     string
	Rules   kube.ParseOptions                 // by which kubeconfigs are read
	Aliases map[federation.ClusterID][]string // by ID
	// Cluster makes a cluster of a kubeconfig.
	Cluster func(federation.ClusterID, *kube.Credentials) registries.Cluster
	// Forget has it forgotten who a cluster is that was detached.
	Forget func(context.Context, federation.ClusterID) error
}

// FollowFolder follows the folder until the context ends.
func (r *Reconciler) FollowFolder(f Folder) func(context.Context) error {
	folder := kube.WatchDir(f.Dir, kube.WatchOptions{
		Check:  func(content []byte) error { _, err := kube.Parse(content, f.Rules); return err },
		Logger: r.o.Logger,
	})
	return func(ctx context.Context) error {
		if err := folder.Run(ctx, folderHandler{f, r}); ctx.Err() == nil {
			return err
		}
		return nil
	}
}

type folderHandler struct {
	Folder
	to *Reconciler
}

// FilesChanged is part of kube.FileHandler.
func (f folderHandler) FilesChanged(ctx context.Context, events []kube.FileEvent) {
	done := f.to.post(func(in *Inputs) {
		readable := true
		for _, e := range events {
			readable = readable && (e.ID != "" || e.Kind != kube.FileProblem)
			f.take(in, e)
		}
		in.FolderLooked, in.FolderRead = true, in.FolderRead || readable
	})
	select {
	case <-done:
	case <-ctx.Done():
		return
	}
	for _, e := range events {
		if id := federation.ClusterID(e.ID); e.Kind == kube.FileGone && id != "" && id != f.to.o.Hub {
			if err := f.Forget(ctx, id); err != nil {
				f.to.o.Logger.Warn("the identity of a detached cluster was not deleted", "cluster", id, "err", err)
			}
		}
	}
}

func (f folderHandler) take(in *Inputs, e kube.FileEvent) {
	id := federation.ClusterID(e.ID)
	log := f.to.o.Logger.With("cluster", e.ID, "files", e.Files)
	switch {
	case id == "":
		log.Warn("the folder of kubeconfigs", "problem", e.Problem.String())
		return
	case id == in.Hub:
		log.Warn("a kubeconfig is skipped: the hub itself has this ID")
		return
	case e.Kind == kube.FileGone:
		log.Info("detaching a cluster: its kubeconfig is gone")
		delete(in.Folder, id)
		return
	case e.Kind == kube.FileProblem:
		log.Warn("a kubeconfig cannot be used", "problem", e.Problem.String())
	}
	in.Folder[id] = f.claim(e)
}

// claim is what a file says.
func (f Folder) claim(e kube.FileEvent) Claim {
	id := federation.ClusterID(e.ID)
	spec := federation.ClusterSpec{Provider: federation.Kubernetes, Aliases: federation.NewAliases(f.Aliases[id])}
	if e.Kind == kube.FileProblem {
		return Refuse(id, spec, folderName+": "+e.Problem.String())
	}
	credentials, err := kube.Parse(e.Content, f.Rules)
	if err != nil {
		return Refuse(id, spec, fmt.Sprintf("%s: %s: %s", folderName, strings.Join(e.Files, ", "), err))
	}
	c := f.Cluster(id, credentials)
	c.Spec.Aliases = spec.Aliases
	return Claim{Cluster: c}
}
