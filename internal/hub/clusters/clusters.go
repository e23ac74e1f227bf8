// Package clusters joins the attached clusters: the places that name them, the registries
// that follow them, and what GraphQL attaches them with.
package clusters

import (
	"context"
	"log/slog"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/hub/identities"
	"isthmus.dev/isthmus/internal/hub/kinds"
	"isthmus.dev/isthmus/internal/hub/mesh"
	"isthmus.dev/isthmus/internal/hub/settings"
	"isthmus.dev/isthmus/internal/hub/sources"
	"isthmus.dev/isthmus/internal/identity"
	"isthmus.dev/isthmus/internal/metrics"
	"isthmus.dev/isthmus/internal/seal"
	"isthmus.dev/isthmus/internal/serviceimport"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/provider"
	"isthmus.dev/isthmus/registries/reconcile"
)

// Options are what clusters are attached with.
type Options struct {
	Settings   settings.Settings
	Policy     federation.AddressPolicy
	Dir        string // of what was last known of clusters
	Known      func(federation.ClusterID) Record
	Snapshots  *federation.Aggregate
	Identities *identities.Identities
	Secrets    *identity.Secrets
	Sources    []sources.ClusterReader // of objects that are configuration
	Leader     serviceimport.Leader    // of several hubs, the one that writes into clusters
	Ready      func() <-chan struct{}  // closed when clusters and configuration are there
	Metrics    *metrics.Metrics
	Logger     *slog.Logger
}

// Clusters is the registries, and what follows the places that name them.
type Clusters struct {
	Supervisor *registries.Supervisor
	// Run are the parts that run, by name.
	Run map[string]func(context.Context) error

	o          Options
	make       maker
	usages     *usages
	reconciler *reconcile.Reconciler
}

// New attaches the clusters of the config file, and has the others followed.
func New(o Options) (*Clusters, error) {
	c := &Clusters{o: o, usages: &usages{metrics: o.Metrics.Registries}}
	secondhand, attached := c.maker(following{Options: o}), make(chan struct{}) // clusters that Secrets name themselves name none
	c.reconciler = reconcile.New(reconcile.Options{
		Hub: o.Settings.ClusterID, Snapshots: o.Snapshots, Attached: attached, Holders: o.Settings.Remotes.Holders,
		Namespaces: o.Settings.Remotes.Namespaces,
		Remote:     secondhand.kubeconfigCluster, Rules: secondhand.Kubernetes().Rules(""), Metrics: o.Metrics.Clusters, Logger: o.Logger,
	})
	c.make = c.maker(following{Options: o, remotes: c.remotes()})
	c.Supervisor = registries.New(registries.Options{
		Aggregate: o.Snapshots, Dir: o.Dir, Attached: attached, Logger: o.Logger, Metrics: o.Metrics.Registries,
	})
	return c, c.follow()
}

// remotes read the objects of attached clusters that name further clusters.
func (c *Clusters) remotes() map[attach.RemoteKind]*attach.Remotes {
	of := c.o.Settings.Remotes
	options := func(by attach.RemoteKind) attach.RemoteOptions {
		return attach.RemoteOptions{Namespace: of.Namespaces[by], Snapshots: c.o.Snapshots, To: c.reconciler, Logger: c.o.Logger}
	}
	return map[attach.RemoteKind]*attach.Remotes{
		attach.Secrets:  attach.NewRemotes(options(attach.Secrets)),
		attach.Profiles: attach.NewProfiles(options(attach.Profiles), of.Profiles),
	}
}

// maker makes registries, beside which others may follow the clusters.
func (c *Clusters) maker(also following) maker {
	host := provider.Host{
		Policy: c.o.Policy, Limits: c.o.Settings.Limits, Logger: c.o.Logger, Used: c.usages.of, Ended: c.usages.forget,
		Count: c.o.Metrics.Registries.Request,
	}
	return maker{
		Hub:   kinds.Hub{Host: host, Following: also, Trusted: c.o.Identities.Trust},
		known: c.o.Known,
	}
}

// follow begins with the clusters of the config file, and notes what looks for more.
func (c *Clusters) follow() error {
	s := c.o.Settings
	c.Run = map[string]func(context.Context) error{"registries": c.Supervisor.Run, "clusters": c.reconciler.Run}
	claims, files, err := c.make.configured(s.Clusters)
	if err != nil {
		return err
	}
	first := reconcile.Start{Config: claims, Folder: s.KubeconfigDir != ""}
	if s.Sample {
		first.Config, first.Sample = nil, claims
	}
	if err := c.reconciler.Start(c.Supervisor, first); err != nil {
		return err
	}
	if len(files) > 0 {
		c.Run["kubeconfig files"] = c.reconciler.FollowKubeconfigs(files)
	}
	if first.Folder {
		c.Run["kubeconfigs"] = c.reconciler.FollowFolder(reconcile.Folder{
			Dir: s.KubeconfigDir, Rules: c.make.Kubernetes().Rules(""), Aliases: s.ClusterAliases, Cluster: c.make.folderCluster,
			Forget: c.make.known.forget,
		})
	}
	return nil
}

// Objects has the registries follow Cluster objects, and returns what makes such objects.
func (c *Clusters) Objects(m *mesh.Mesh, keys *seal.Keys) Attaching {
	credentials := attach.NewCredentialStore(m.Stored, keys, m.Epoch)
	c.Run["objects"] = c.reconciler.FollowObjects(reconcile.Objects{
		Views: m.Views,
		Claim: objectClusters{c.make, credentials, c.o.Metrics.Clusters}.claim,
	})
	c.Run["sealing"] = (&sealing{keys: keys, credentials: credentials, logger: c.o.Logger}).run
	kinds := c.make.Attached()
	return Attaching{attach.New(attach.Options{
		Engine: m.Engine, Views: m.Views, Snapshots: c.o.Snapshots, Registries: c.Supervisor, Plans: plans{c.reconciler},
		Credentials: credentials, Forget: c.make.known.forget, Hub: c.o.Settings.ClusterID, Kinds: kinds,
	}), kinds, c.o.Metrics.Clusters}
}

// plans are those of the reconciler, as attach.Clusters reads them.
type plans struct{ of *reconcile.Reconciler }

// Latest is part of attach.Options.
func (p plans) Latest() attach.Plan { return p.of.Latest() }
