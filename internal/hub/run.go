package hub

import (
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"runtime"
	"time"

	"google.golang.org/grpc"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/etcd"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/metrics"
	"isthmus.dev/isthmus/internal/probe"
	"isthmus.dev/isthmus/internal/probe/sheets"
	gatewaynames "isthmus.dev/isthmus/internal/resolve"
	"isthmus.dev/isthmus/internal/seal"
	"isthmus.dev/isthmus/internal/server"
	"isthmus.dev/isthmus/internal/source"
	"isthmus.dev/isthmus/internal/version"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/reconcile"
	"isthmus.dev/isthmus/xds"
)

// parts are what was opened and may have failed.
type parts struct {
	dir          *dataDir
	doors        listeners
	certificates *server.Certificates // nil: plaintext
	store        *etcd.Store
	keys         *seal.Keys
	logger       *slog.Logger
	log          logging
	operators    *tls.Config // of GraphQL; nil: plaintext
}

// tls is nil for plaintext.
func (p parts) tls() *tls.Config {
	if p.certificates == nil {
		return nil
	}
	return p.certificates.TLS()
}

// join is the only place that knows every room.
//
//nolint:funlen // one list, in the order in which rooms need each other
func join(ctx context.Context, s Settings, p parts) (*assembly, error) {
	counts := metrics.New()
	counts.Build(version.Version, version.Revision(), runtime.Version())
	callers := source.NewLog(p.logger)
	p.doors = p.doors.limited(s.connections, counts.Server, callers)
	aggregate := federation.NewAggregate(snapshotMetrics{counts})
	who, err := openIdentities(ctx, identityParts{
		settings: s.identity, hub: federation.ClusterID(s.clusterID), store: p.store.Shared(sharedAuthority), keys: p.keys,
		snapshots: aggregate, metrics: counts.Identity, logger: p.logger,
		proven: func(remote net.Addr) { server.Established(p.doors.xds, remote) },
	})
	if err == nil && p.certificates != nil {
		err = refuseMeshRoots(who.trust, p.certificates.ClientCAs())
	}
	if err != nil {
		return nil, err
	}
	p.operators = operators(p.tls(), who.trust)
	secrets, err := joinSecrets(s, who, aggregate, p.logger)
	if err != nil {
		return nil, err
	}
	with := surroundings{policy: p.doors.policy(s.dev), metrics: counts, secrets: secrets.kept, who: who, limits: s.limits, logger: p.logger, usages: &usages{metrics: counts.Registries}}
	with.known = func(id federation.ClusterID) record { return p.store.Shared(sharedKnown + string(id)) }
	setPolicy(aggregate, with.policy)
	attachment, err := joinRegistries(s, p, with, aggregate)
	if err != nil {
		return nil, err
	}
	configuration, err := joinMesh(meshParts{store: p.store, snapshots: aggregate, hub: federation.ClusterID(s.clusterID), configDir: s.configDir, logger: p.logger, counts: counts.Config})
	if err != nil {
		return nil, err
	}
	attaching := attachment.joinObjects(s, p, configuration)
	all := whenBoth{clusters: attachment.supervisor.Ready(), mesh: configuration, ready: make(chan struct{})}

	proxyFleet := fleet.New()
	replica, err := p.dir.replica()
	if err != nil {
		return nil, err
	}
	here := presence{hub: replica, leases: configuration.stored, views: configuration.views.Latest, shared: len(s.etcd.Endpoints) > 0, logger: p.logger}
	found := probe.New(probe.Options{Snapshots: aggregate, Store: sheets.Store{Hub: replica, Leases: configuration.stored}, Logger: p.logger})
	discovery := xds.New(xds.Options{
		Snapshots: aggregate, Fleet: proxyFleet, Ready: all.ready, Metrics: xdsMetrics{counts.XDS}, Traffic: xdsMetrics{counts.XDS},
		Logger: p.logger, Secrets: secrets, SecretsOnSocket: s.dev, Access: proxyAccessOf(s, who, aggregate),
		Findings: counts.XDS.Findings, UnknownNames: counts.XDS.UnknownNames, Probes: probers{found}, Limits: s.connections.streams,
	})
	grpcServer := grpc.NewServer(append(s.connections.grpc(who.tls(p.tls()), counts.Server, callers).Options(), discovery.ServerOptions()...)...)
	discovery.Register(grpcServer)
	if service := who.service(p.logger); service != nil {
		service.Register(grpcServer)
	}

	schema := graph.New(graph.Options{
		Snapshots: aggregate, Counters: counters{attachment.supervisor, with.usages}, Fleet: proxyFleet, Explainer: discovery, Inspector: discovery, Config: configuration.graph(delivery{discovery, proxyFleet}, statusOf{federation.ClusterID(s.clusterID), discovery}, here),
		Hub: model.Hub{Version: version.Version, ClusterID: s.clusterID}, Clusters: attaching, Authority: who,
	})
	ready := &readiness{snapshots: aggregate, synced: all.ready, draining: make(chan struct{}), warnings: who.warnings}
	faults := quarantine{hub: federation.ClusterID(s.clusterID), snapshots: aggregate, proxies: discovery, kinds: configuration.kinds, counts: counts.Snapshots}
	health := server.Health(ready.check, counts.Handler(faults.measure))
	api := transport.New(schema, transport.Options{Log: p.logger, Observer: counts.GraphQL, Origins: s.allowedOrigins, HideSchema: s.hideSchema})
	web, err := webOf(s, withCaller(api), withCaller(p.log), health)
	if err != nil {
		return nil, err
	}

	h := &assembly{ready: ready, endWithin: 3 * s.Drain, core: map[string]func(context.Context) error{
		"store":         p.store.Run,
		"registries":    attachment.supervisor.Run,
		"configuration": configuration.run,
		"addresses":     configuration.engine.Run,
		"probes":        found.Run,
		"presence":      here.run,
		"measures":      func(ctx context.Context) error { return configuration.measure(ctx, counts.Config) },
		"secrets":       secrets.run,
		"identities":    who.run,
		"readiness":     all.run,
		"memory":        releaseMemory,
		"gatewaynames":  gatewaynames.New(gatewaynames.Options{Snapshots: aggregate, To: aggregate.Open(federation.ShardKey{Provider: "Resolver"}), Logger: p.logger}).Run,
		"health":        func(ctx context.Context) error { return serveHTTP(ctx, p, healthDoor, s.Drain, health) },
	}, edge: map[string]func(context.Context) error{
		"xds":     discovery.Run,
		"streams": api.Run,
		"grpc":    func(ctx context.Context) error { return server.RunGRPC(ctx, grpcServer, p.doors.xds, s.Drain) },
		"graphql": func(ctx context.Context) error { return serveHTTP(ctx, p, graphqlDoor, s.Drain, web) },
	}}
	if p.certificates != nil {
		h.core["certificates"] = p.certificates.Run
	}
	maps.Copy(h.core, attachment.follow)
	return h, nil
}

func setPolicy(aggregate *federation.Aggregate, policy federation.AddressPolicy) {
	aggregate.Open(federation.ShardKey{Provider: federation.Operator}).Update(federation.Edit{Settings: &federation.Settings{Addresses: policy}})
}

// attachment is the registries, and what follows the places that name them.
type attachment struct {
	supervisor *registries.Supervisor
	reconciler *reconcile.Reconciler
	with       surroundings
	aggregate  *federation.Aggregate
	follow     map[string]func(context.Context) error
}

// joinRegistries attaches the clusters of the config file, and has the others
// followed.
func joinRegistries(s Settings, p parts, with surroundings, aggregate *federation.Aggregate) (attachment, error) {
	remote, attached := with, make(chan struct{}) // clusters that Secrets name themselves name none
	reconciler := reconcile.New(reconcile.Options{
		Hub: federation.ClusterID(s.clusterID), Snapshots: aggregate, Attached: attached, Holders: s.remoteHolders, Namespace: s.remoteNamespace,
		Remote: remote.kubeconfigCluster, Rules: with.kubernetes().Rules(""), Metrics: with.metrics.Clusters, Logger: p.logger,
	})
	if len(s.remoteHolders) > 0 {
		with.holders = s.remoteHolders
		with.remotes = attach.NewRemotes(attach.RemoteOptions{Namespace: s.remoteNamespace, Snapshots: aggregate, To: reconciler, Logger: p.logger})
	}
	a := attachment{reconciler: reconciler, with: with, aggregate: aggregate, follow: map[string]func(context.Context) error{"clusters": reconciler.Run}}
	a.supervisor = registries.New(registries.Options{
		Aggregate: aggregate, Dir: p.dir.lastKnownGood(), Attached: attached, Logger: p.logger, Metrics: with.metrics.Registries,
	})
	claims, files, err := configuredClaims(with, s.clusters)
	if err != nil {
		return a, err
	}
	first := reconcile.Start{Config: claims, Folder: s.kubeconfigDir != ""}
	if s.sample {
		first.Config, first.Sample = nil, claims
	}
	if err := reconciler.Start(a.supervisor, first); err != nil {
		return a, err
	}
	if len(files) > 0 {
		a.follow["kubeconfig files"] = reconciler.FollowKubeconfigs(files)
	}
	if first.Folder {
		a.follow["kubeconfigs"] = reconciler.FollowFolder(reconcile.Folder{
			Dir: s.kubeconfigDir, Rules: with.kubernetes().Rules(""), Aliases: s.clusterAliases, Cluster: with.folderCluster, Forget: with.known.forget,
		})
	}
	return a, nil
}

// joinObjects has the registries follow Cluster objects, and returns what makes
// such objects.
func (a attachment) joinObjects(s Settings, p parts, m *mesh) attaching {
	vault := attach.NewVault(m.stored, p.keys, m.epoch)
	a.follow["objects"] = a.reconciler.FollowObjects(reconcile.Objects{Views: m.views, Claim: objectClusters{a.with, vault}.claim})
	a.follow["sealing"] = sealing{keys: p.keys, vault: vault, logger: p.logger}.run
	clusters := attach.New(attach.Options{
		Engine: m.engine, Views: m.views, Snapshots: a.aggregate, Registries: a.supervisor, Plans: plans{a.reconciler}, Vault: vault, Forget: a.with.known.forget, Hub: federation.ClusterID(s.clusterID),
		Look: looks(a.with),
	})
	return attaching{clusters, a.with.metrics.Clusters}
}

// plans are those of the reconciler, as attach.Clusters reads them.
type plans struct{ of *reconcile.Reconciler }

// Latest is part of attach.Options.
func (p plans) Latest() attach.Plan { return p.of.Latest() }

// webOf is everything behind the GraphQL address.
func webOf(s Settings, api, logging, health http.Handler) (http.Handler, error) {
	web, err := pages(s.facts(), api)
	if err != nil {
		return nil, err
	}
	web.Handle("GET /logging", logging)
	web.Handle("POST /logging", logging)
	names, err := s.hosts()
	if err != nil {
		return nil, err
	}
	if s.dev {
		for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
			web.Handle(path, health)
		}
	}
	return server.Guard(web, server.GuardOptions{
		Hosts: append(names, s.allowedHosts...), Origins: s.allowedOrigins,
		Refuse: func(w http.ResponseWriter, r *http.Request, why string) {
			transport.Refuse(w, r, http.StatusForbidden, transport.Forbidden, why)
		},
	}), nil
}

type door int

const (
	graphqlDoor door = iota
	healthDoor
)

// serveHTTP serves behind one of the doors; health is plain HTTP.
func serveHTTP(ctx context.Context, p parts, d door, drain time.Duration, handler http.Handler) error {
	if d == healthDoor {
		return server.NewHTTP(handler, server.HTTPOptions{Drain: time.Second, Logger: p.logger}).Run(ctx, p.doors.health)
	}
	return server.NewHTTP(handler, server.HTTPOptions{TLS: p.operators, Drain: drain, Logger: p.logger}).Run(ctx, p.doors.graphql)
}

// hosts are the names under which the GraphQL address may be asked, beside those
// of this machine.
func (s *Settings) hosts() ([]string, error) {
	if s.dev {
		return nil, nil
	}
	return certificateNames(s.tls.Cert)
}
