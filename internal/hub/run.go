package hub

import (
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"google.golang.org/grpc"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/etcd"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
	"isthmus.dev/isthmus/internal/clientaddr"
	"isthmus.dev/isthmus/internal/drainclock"
	"isthmus.dev/isthmus/internal/gatewaydns"
	"isthmus.dev/isthmus/internal/hub/clusters"
	"isthmus.dev/isthmus/internal/hub/collectors"
	"isthmus.dev/isthmus/internal/hub/identities"
	"isthmus.dev/isthmus/internal/hub/listeners"
	"isthmus.dev/isthmus/internal/hub/memory"
	"isthmus.dev/isthmus/internal/hub/mesh"
	"isthmus.dev/isthmus/internal/hub/proxies"
	"isthmus.dev/isthmus/internal/hub/settings"
	"isthmus.dev/isthmus/internal/hub/status"
	"isthmus.dev/isthmus/internal/hub/web"
	"isthmus.dev/isthmus/internal/jwks/fetch"
	"isthmus.dev/isthmus/internal/leaderelection"
	"isthmus.dev/isthmus/internal/metrics"
	"isthmus.dev/isthmus/internal/probe"
	"isthmus.dev/isthmus/internal/probe/healthstore"
	"isthmus.dev/isthmus/internal/registration"
	"isthmus.dev/isthmus/internal/seal"
	"isthmus.dev/isthmus/internal/server"
	"isthmus.dev/isthmus/internal/version"
	"isthmus.dev/isthmus/xds"
	"isthmus.dev/isthmus/xds/istiodebug"
	"isthmus.dev/isthmus/xds/mcp"
)

// rooms are the parts of a hub, in the order in which they need each other.
type rooms struct {
	*Hub
	logger    *slog.Logger
	store     *etcd.Store
	keys      *seal.Keys
	metrics   *metrics.Metrics
	callers   *clientaddr.Log
	limited   listeners.Listeners
	snapshots *federation.Aggregate

	identities *identities.Identities
	secrets    proxies.Secrets
	clusters   *clusters.Clusters
	mesh       *mesh.Mesh
	attaching  clusters.Attaching
	writer     *leaderelection.Elector // of the status of objects in clusters

	fleet    *fleet.Fleet
	presence mesh.Presence
	probes   *probe.Keeper
	members  *registration.Keeper
	ready    *readiness
	proxies  *xds.Server
	debug    *istiodebug.Debug
}

// join is the only place that knows every room.
func (h *Hub) join(ctx context.Context, store *etcd.Store, keys *seal.Keys) (*assembly, error) {
	counts, logger := metrics.New(), h.log.Logger
	counts.Build(version.Version, version.Revision(), runtime.Version())
	r := &rooms{
		Hub: h, logger: logger, store: store, keys: keys, metrics: counts, callers: clientaddr.NewLog(logger),
		snapshots: federation.NewAggregate(collectors.Snapshots{Metrics: counts}), fleet: fleet.New(),
	}
	r.limited = h.doors.Limited(h.settings.Connections, counts.Server, r.callers)
	for _, step := range []func(context.Context) error{r.openIdentities, r.openMesh, r.openClusters, r.openProxies} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return r.assemble()
}

// openIdentities opens who signs certificates, who is trusted, and the secrets of proxies.
func (r *rooms) openIdentities(ctx context.Context) (err error) {
	s := r.settings
	r.identities, err = identities.Open(ctx, identities.Options{
		Settings: s.Identity, Hub: s.ClusterID, TokenCluster: s.Debug.TokenCluster, Store: r.store.Shared(sharedAuthority), Keys: r.keys,
		Snapshots: r.snapshots, Metrics: r.metrics.Identity, Logger: r.logger,
		Proven: func(remote net.Addr) { server.Established(r.limited.XDS, remote) },
	})
	if err == nil && r.certificates != nil {
		err = r.identities.RefuseMeshRoots(r.certificates.ClientCAs())
	}
	if err == nil && r.serving != nil {
		err = r.serving.Open(r.identities)
	}
	if err != nil {
		return err
	}
	r.secrets, err = proxies.OpenSecrets(proxies.SecretOptions{
		Dir: s.SecretDir, Hub: s.ClusterID, Identities: r.identities, Snapshots: r.snapshots, Logger: r.logger,
	})
	if err != nil {
		return settings.Usagef("%w", err)
	}
	return nil
}

// openClusters attaches the clusters that the settings name, and those of objects.
func (r *rooms) openClusters(context.Context) (err error) {
	policy := r.doors.Policy(r.settings.Dev)
	settings := federation.Edit{Settings: &federation.Settings{Addresses: policy}}
	r.snapshots.Open(federation.ShardKey{Provider: federation.Operator}).Update(settings)
	r.clusters, err = clusters.New(clusters.Options{
		Settings: r.settings, Policy: policy, Dir: r.dir.LastKnownGood(), Snapshots: r.snapshots, Identities: r.identities,
		Known:   func(id federation.ClusterID) clusters.Record { return r.store.Shared(sharedKnown + string(id)) },
		Secrets: r.secrets.Kept, Sources: r.mesh.Readers, Leader: r.writer, Ready: func() <-chan struct{} { return r.ready.synced },
		Metrics: r.metrics, Logger: r.logger,
	})
	if err != nil {
		return err
	}
	r.attaching = r.clusters.Objects(r.mesh, r.keys)
	r.ready = newReadiness(r.snapshots, r.clusters.Supervisor.Ready(), r.mesh.Views, r.warnings)
	return nil
}

// openMesh joins the configuration.
func (r *rooms) openMesh(context.Context) (err error) {
	leader := leaderelection.Options{What: "the status of objects in clusters", Logger: r.logger}
	leader.Hub, err = r.dir.Replica()
	if err != nil {
		return err
	}
	if len(r.settings.Etcd.Endpoints) > 0 {
		leader.Record = r.store.Shared(sharedStatus)
	}
	r.writer = leaderelection.New(leader)
	r.mesh, err = mesh.New(mesh.Options{
		Store: r.store, Snapshots: r.snapshots, Hub: r.settings.ClusterID, Sources: r.settings.Sources, Kept: r.dir.Sources,
		Limits: r.settings.Limits, Leader: r.writer, Logger: r.logger, Metrics: r.metrics.Config,
	})
	return err
}

// warnings are what does not keep the hub from serving.
func (r *rooms) warnings() []string {
	all := r.identities.Warnings()
	if refused := r.store.Refusal(); refused != nil {
		all = append(slices.Clip(all), refused.Error())
	}
	return all
}

// measureStore shows whether the folder of an embedded store takes changes.
func (r *rooms) measureStore() {
	if len(r.settings.Etcd.Endpoints) == 0 {
		r.metrics.Config.Writable(r.dir.Etcd(), r.store.Refusal() == nil)
	}
}

// openProxies makes what serves proxies, and what other hubs know of this one.
func (r *rooms) openProxies(context.Context) error {
	replica, err := r.dir.Replica()
	if err != nil {
		return err
	}
	r.presence = mesh.Presence{
		Hub: replica, Leases: r.mesh.Stored, Views: r.mesh.Views.Latest,
		Shared: len(r.settings.Etcd.Endpoints) > 0, Logger: r.logger,
	}
	r.probes = probe.New(probe.Options{
		Snapshots: r.snapshots, Store: healthstore.Store{Hub: replica, Leases: r.mesh.Stored},
		Logger: r.logger,
	})
	r.debug = istiodebug.New(istiodebug.Options{
		Snapshots: r.snapshots, Fleet: r.fleet, Hub: replica, Build: istiodebug.Build{
			Version:  version.Version,
			Revision: version.Revision(), Go: runtime.Version(),
		},
		Dump: func(stream fleet.Key) (*adminv3.ConfigDump, error) { return xds.ConfigDump(r.proxies, stream) },
	})
	r.members = registration.New(registration.Options{
		Snapshots: r.snapshots, Views: r.mesh.Views, Registrar: r.mesh.Engine, Leases: r.mesh.Stored, Hub: r.settings.ClusterID,
		Metrics: r.metrics.Registrations, Logger: r.logger,
	})
	r.proxies = proxies.New(proxies.Options{
		Dev: r.settings.Dev, Snapshots: r.snapshots, Fleet: r.fleet, Identities: r.identities, Secrets: r.secrets,
		Probes: r.probes, Members: r.members,
		Configuration: mcp.New(mcp.Options{
			Snapshots: r.snapshots, Views: r.mesh.Views, Kinds: r.mesh.Kinds, Origin: r.mesh.Epoch,
			Logger: r.logger,
		}), Readers: r.settings.MCPClients,
		Debug: r.debug, Inspectors: r.settings.Debug.Clients,
		Limits: r.settings.Streams, Ready: r.ready.synced, Metrics: r.metrics.XDS, Logger: r.logger,
	})
	return nil
}

// trust returns why the client of a connection to GraphQL is not an operator any more, for the client.
func (r *rooms) trust(s *tls.ConnectionState) error {
	chains, err := r.certificates.Verify(s)
	if err != nil {
		return err
	}
	now := *s
	now.VerifiedChains = chains
	return r.identities.RefuseOperator(now)
}

// assemble makes the servers, and lists all that runs.
func (r *rooms) assemble() (*assembly, error) {
	s := r.settings
	objects := r.objects()
	api := transport.New(graph.New(graph.Options{
		Snapshots: r.snapshots, Counters: r.clusters.Counters(), Fleet: r.fleet, Explainer: r.proxies, Inspector: r.proxies,
		Config: r.mesh.Graph(status.Delivery{Server: r.proxies, Fleet: r.fleet}, objects, r.presence, web.CallerOf),
		Hub:    model.Hub{Version: version.Version, ClusterID: string(s.ClusterID)}, Start: r.ready,
		Clusters: r.attaching, Authority: r.identities,
	}), transport.Options{Log: r.logger, Observer: r.metrics.GraphQL, Origins: s.AllowedOrigins, HideSchema: s.HideSchema, Trust: r.trust})
	faults := collectors.Quarantine{
		Hub: s.ClusterID, Snapshots: r.snapshots, Proxies: r.proxies,
		Kinds: r.mesh.Kinds, Counts: r.metrics.Snapshots,
	}
	drains := collectors.Drains{Snapshots: r.snapshots, Counts: r.metrics.Drains}
	health := server.Health(r.ready.Check, r.metrics.Handler(faults.Measure, drains.Measure, r.measureStore))
	web.Inspect(health, web.Forwarded(r.debug.Handler(func(q *http.Request) error { return web.FromHere(q, s.Debug.PortForward) })))
	inspectors := proxies.Inspectors(s.Debug.Clients)
	debug := r.debug.Handler(func(q *http.Request) error { return inspectors.Check(web.CallerOf(q.Context())) })
	pages, err := web.New(s, web.Parts{API: api, Logging: r.log.Handler(web.CallerOf), Health: health, Debug: debug, Trust: r.trust})
	if err != nil {
		return nil, err
	}
	all := &assembly{ready: r.ready, endWithin: 3 * s.Drain, core: r.core(), edge: map[string]func(context.Context) error{
		"xds":     r.proxies.Run,
		"streams": api.Run,
		"grpc":    r.serveGRPC(),
		"graphql": serveHTTP(r.limited.GraphQL, pages, server.HTTPOptions{
			TLS:   r.identities.Operators(r.tls()),
			Drain: s.Drain, Logger: r.logger,
		}),
	}}
	all.core["health"] = serveHTTP(r.limited.Health, health, server.HTTPOptions{Drain: time.Second, Logger: r.logger})
	return all, nil
}

// core is what goes on until the edge has drained.
func (r *rooms) core() map[string]func(context.Context) error {
	resolver := r.snapshots.Open(federation.ShardKey{Provider: "Resolver"})
	keys := fetch.Options{
		Snapshots: r.snapshots, To: r.snapshots.Open(federation.ShardKey{Provider: "Keys"}),
		Metrics: r.metrics.KeySets, Logger: r.logger, Dir: r.dir.TokenKeys(),
	}
	clock := r.snapshots.Open(federation.ShardKey{Provider: "Clock"})
	core := map[string]func(context.Context) error{
		"store":         r.store.Run,
		"configuration": r.mesh.Run,
		"addresses":     r.mesh.Engine.Run,
		"probes":        r.probes.Run,
		"registrations": r.members.Run,
		"presence":      r.presence.Run,
		"measures":      func(ctx context.Context) error { return r.mesh.Measure(ctx, r.metrics.Config) },
		"secrets":       r.secrets.Run,
		"identities":    r.identities.Run,
		"writer":        r.writer.Run,
		"status":        r.writeStatus,
		"readiness":     r.ready.run,
		"memory":        memory.Release,
		"gatewaynames":  gatewaydns.New(gatewaydns.Options{Snapshots: r.snapshots, To: resolver, Logger: r.logger}).Run,
		"drains":        drainclock.New(drainclock.Options{Snapshots: r.snapshots, To: clock, Logger: r.logger}).Run,
		"jwks":          fetch.New(keys).Run,
	}
	if r.certificates != nil {
		core["certificates"] = r.certificates.Run
	}
	if r.serving != nil {
		core["serving"] = r.serving.Run
	}
	maps.Copy(core, r.clusters.Run)
	return core
}

// objects computes the status of objects.
func (r *rooms) objects() *status.Objects {
	return &status.Objects{Hub: r.settings.ClusterID, Signs: r.identities.SignsFor(), Proxies: r.proxies}
}

// writeStatus writes the status of objects into clusters.
func (r *rooms) writeStatus(ctx context.Context) error {
	objects := r.objects()
	return r.mesh.WriteStatus(ctx, status.NewWritten(objects, r.proxies, r.fleet, r.secrets.Kept), r.presence)
}

// serveGRPC serves xDS, and Istio's certificate service where the hub signs.
func (r *rooms) serveGRPC() func(context.Context) error {
	reached := r.settings.Connections.GRPC(r.identities.TLS(r.tls()), r.metrics.Server, r.callers)
	to := grpc.NewServer(append(reached.Options(), r.proxies.ServerOptions()...)...)
	r.proxies.Register(to)
	if service := r.identities.Service(r.logger); service != nil {
		service.Register(to)
	}
	return func(ctx context.Context) error { return server.RunGRPC(ctx, to, r.limited.XDS, r.settings.Drain) }
}
