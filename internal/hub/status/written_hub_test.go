package status_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest/memory"
	"isthmus.dev/isthmus/federation/config/crd"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/writeback"
	"isthmus.dev/isthmus/internal/hub/status"
	"isthmus.dev/isthmus/internal/hub/status/statustest"
	"isthmus.dev/isthmus/internal/identity"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/kube/listwatch/listwatchtest"
	"isthmus.dev/isthmus/xds/xdstest"
)

// leads says whether a hub writes statuses.
type leads struct {
	leads   atomic.Bool
	changed chan struct{}
}

func newLeader() *leads {
	l := &leads{changed: make(chan struct{}, 1)}
	l.leads.Store(true)
	return l
}

func (l *leads) Leads() bool              { return l.leads.Load() }
func (l *leads) Changed() <-chan struct{} { return l.changed }

func (l *leads) set(is bool) {
	l.leads.Store(is)
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// nobody ignores why statuses are not written.
type nobody struct{}

func (nobody) StatusTrouble(federation.ClusterID, []config.Problem) {}

// unmetered counts no writes.
type unmetered struct{}

func (unmetered) StatusWrote(string)          {}
func (unmetered) StatusFailed(string, string) {}

// source is a source of configuration.
type source struct {
	*memory.Store
	revision int64
}

func newSource() *source {
	var kinds []federation.Kind
	for _, k := range kind.All() {
		kinds = append(kinds, k.Kind)
	}
	return &source{Store: memory.New(append(kinds, federation.HubPresenceKind)...)}
}

// put has the source have the object; nil deletes it.
func (s *source) put(t *testing.T, key federation.ObjectKey, o *config.Object) {
	t.Helper()
	revision, err := s.Commit(t.Context(), config.Commit{Base: s.revision, Changes: []config.Change{{Key: key, Object: o}}})
	if err != nil {
		t.Fatal(err)
	}
	s.revision = revision
}

// hub writes the statuses of the objects of a cluster, and serves proxies.
type hub struct {
	statustest.Hub
	t                                *testing.T
	snapshots                        *federation.Aggregate
	etcd, cluster                    *source // of configuration
	objects                          *cluster
	reached                          *listwatch.Cluster
	uids                             int
	leader                           *leads
	parts                            writeback.Parts
	writer                           *writeback.Writer
	operator, registry, secretWriter *federation.Writer
	secrets                          *identity.Secrets
	proxies                          map[string]*proxy
}

// startHub starts a hub with one cluster until the test ends.
func startHub(t *testing.T) *hub {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	t.Cleanup(ended.Wait)
	t.Cleanup(cancel)
	quiet, snapshots := slog.New(slog.DiscardHandler), federation.NewAggregate(nil)
	h := &hub{
		Hub: statustest.Serve(t, snapshots), t: t, snapshots: snapshots, etcd: newSource(), cluster: newSource(), leader: newLeader(),
		secrets: identity.New(identity.Options{Logger: quiet}), proxies: map[string]*proxy{},
	}
	h.writer = h.newWriter(h.leader)
	h.objects = &cluster{version: 1000, objects: map[string]*crd.Original{}, to: h.writer.Read}
	in := config.Options{Hub: "hub"}
	gateways := gatewayapi.New(gatewayapi.Options{Snapshots: snapshots, Logger: quiet})
	views := config.NewAggregate(in, snapshots.Open(config.NewState(in).Source()), quiet, config.Named{Name: "ETCD", Source: h.etcd},
		config.Named{Name: "CRD", Source: h.cluster}, config.Named{Name: "GATEWAY_API", Source: gateways})
	gateways.Views(views)
	h.operator = snapshots.Open(federation.ShardKey{Provider: federation.Operator})
	h.operator.Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
		Set: map[federation.ClusterID]federation.ClusterSpec{"c1": {Provider: federation.Kubernetes}},
	}})
	h.registry = snapshots.Open(federation.ShardKey{Provider: federation.Kubernetes, Cluster: "c1"})
	h.secretWriter = snapshots.Open(federation.ShardKey{Provider: federation.Operator, Cluster: "hub"})
	h.ready(federation.Ready)
	written := status.NewWritten(h.Objects, h.Server, h.Fleet, h.secrets)
	written.Others = func() int { return views.Latest().State.OtherHubs("hub") }
	h.parts = writeback.Parts{
		Views: views, Gateways: gateways.Statuses(h.writer.Translated), Proxies: written, Resources: nobody{}, Ingresses: nobody{},
	}
	server := listwatchtest.New("uid-1")
	server.Wrong(h.objects.answer)
	custom, err := dynamic.NewForConfigAndClient(&rest.Config{Host: "http://cluster.test", QPS: -1}, &http.Client{Transport: server})
	if err != nil {
		t.Fatal(err)
	}
	h.reached = listwatchtest.Probed(t, server.Client(t), listwatch.ClusterOptions{Probe: time.Hour, Dynamic: custom, Logger: quiet})
	ended.Go(func() { _ = views.Run(ctx) })
	ended.Go(func() { _ = h.writer.Run(ctx, h.parts) })
	ended.Go(func() { h.writer.Follow(ctx, "c1", h.reached) })
	return h
}

func (h *hub) newWriter(leader writeback.Leader) *writeback.Writer {
	return writeback.New(writeback.Options{
		Snapshots: h.snapshots, Leader: leader, Meter: unmetered{}, Logger: slog.New(slog.DiscardHandler),
	})
}

// ready has the registry report the phase of the cluster.
func (h *hub) ready(phase federation.Phase) {
	h.registry.Update(federation.Edit{
		Status: &federation.RegistryStatus{Phase: phase}, Identity: &federation.ClusterIdentity{UID: "uid-1"},
	})
}

// manifest is an object with that spec.
func (h *hub) manifest(key federation.ObjectKey, uid, spec string) *config.Object {
	h.t.Helper()
	metadata := map[string]any{"name": key.Name, "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z"}
	if key.Namespace != "" {
		metadata["namespace"] = key.Namespace
	}
	version := key.Group + "/v1"
	if key.Kind == "EnvoyFilter" {
		version = key.Group + "/v1alpha3"
	}
	text, err := json.Marshal(map[string]any{"apiVersion": version, "kind": key.Kind, "metadata": metadata, "spec": json.RawMessage(spec)})
	if err != nil {
		h.t.Fatal(err)
	}
	return &config.Object{Key: key, APIVersion: version, Manifest: text}
}

// uid is that of the object in the cluster, which it has from now on if it had none.
func (h *hub) uid(key federation.ObjectKey) string {
	for _, o := range h.objects.originals() {
		if o.Key == key {
			return o.UID
		}
	}
	h.uids++
	return fmt.Sprint("uid-of-", h.uids)
}

// apply has the cluster have the object; an empty spec is not valid.
func (h *hub) apply(key federation.ObjectKey, spec string) {
	h.t.Helper()
	uid := h.uid(key)
	if spec == "" {
		h.objects.put(key, uid, nil)
		return
	}
	o := h.manifest(key, uid, spec)
	h.cluster.put(h.t, key, o)
	h.objects.put(key, uid, o.Manifest)
}

// set sets the spec of MeshSettings, and has the cluster read as it says then.
func (h *hub) set(settings string) {
	h.etcd.put(h.t, federation.MeshSettingsKey, h.manifest(federation.MeshSettingsKey, "", settings))
	<-time.NewTimer(time.Minute).C // in fake time
	h.objects.follow(strings.Contains(settings, `"status":true`))
}

func (h *hub) remove(key federation.ObjectKey) {
	h.cluster.put(h.t, key, nil)
	h.objects.remove(key)
	h.writer.Deleted("c1", key)
}

// service has the registry report the Service with that many endpoints; fewer than 0: it is gone.
func (h *hub) service(name string, endpoints int, external ...string) {
	key := federation.ServiceKey{Hostname: federation.ResolveHost(name, "shop"), Namespace: "shop"}
	if endpoints < 0 {
		h.registry.Update(federation.Edit{Services: federation.Delta[federation.ServiceKey, *federation.Shard]{
			Gone: []federation.ServiceKey{key},
		}})
		return
	}
	shard := &federation.Shard{
		Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}}, Labels: map[string]string{federation.GatewayLabel: name},
	}
	for i := range endpoints {
		shard.Endpoints = append(shard.Endpoints, federation.Endpoint{
			Address: federation.IPAddress(netip.AddrFrom4([4]byte{10, 1, 0, byte(i + 1)})),
			Ports:   []federation.EndpointPort{{Name: "http", Number: 8080}},
		})
	}
	for _, text := range external {
		shard.External = append(shard.External, federation.IPAddress(netip.MustParseAddr(text)))
	}
	h.registry.Update(federation.Edit{Services: federation.Delta[federation.ServiceKey, *federation.Shard]{
		Set: map[federation.ServiceKey]*federation.Shard{key: shard},
	}})
}

// settle lets everything happen that follows from what changed: writes that repeat are minutes apart.
func settle() { <-time.NewTimer(30 * time.Minute).C } // in fake time

// fromNothing is what a hub that has computed nothing yet wants to write.
func (h *hub) fromNothing() []string {
	leader := newLeader()
	leader.set(h.leader.Leads())
	fresh := h.newWriter(leader)
	for _, o := range h.objects.originals() {
		fresh.Read(o)
	}
	parts, written := h.parts, status.NewWritten(h.Objects, h.Server, h.Fleet, h.secrets)
	written.Others = h.parts.Proxies.OtherHubs
	written.Reasons = func() ([]federation.ObjectKey, []federation.ServiceKey) { return nil, nil } // one reader is told
	parts.Proxies = written
	return h.objects.compare(func() {
		ctx, cancel := context.WithCancel(h.t.Context())
		var ended sync.WaitGroup
		ended.Go(func() { _ = fresh.Run(ctx, parts) })
		ended.Go(func() { fresh.Follow(ctx, "c1", h.reached) })
		<-time.NewTimer(time.Minute).C // in fake time
		cancel()
		ended.Wait()
	})
}

// refusedText is what some proxies refuse.
const refusedText = "x-refused"

// proxy is a connected proxy.
type proxy struct {
	client  *xdstest.Client
	refuses bool // what has the refusedText

	mu      sync.Mutex
	waits   bool // before it answers
	waiting []xdstest.Response
}

// connect connects a proxy, or closes its stream if it is connected.
func (h *hub) connect(id string, metadata map[string]any, refuses bool) {
	h.t.Helper()
	if p := h.proxies[id]; p != nil {
		p.client.Close()
		delete(h.proxies, id)
		return
	}
	fields, err := structpb.NewStruct(metadata)
	if err != nil {
		h.t.Fatal(err)
	}
	p := &proxy{client: h.Connect(h.t, &corev3.Node{Id: id, Metadata: fields}), refuses: refuses}
	h.proxies[id] = p
	go func() {
		for {
			r, err := p.client.Receive(h.t.Context())
			if err != nil {
				return // the stream is closed
			}
			p.received(r)
		}
	}()
}

func (p *proxy) received(r xdstest.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, r)
	p.answer()
}

// wait has the proxy answer nothing, or all that came.
func (p *proxy) wait(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits = is
	p.answer()
}

// answer answers what came, unless the proxy waits; the caller holds mu.
func (p *proxy) answer() {
	if p.waits {
		return
	}
	for _, r := range p.waiting {
		wrong := false
		for _, resource := range r.Resources {
			wrong = wrong || bytes.Contains(resource.GetValue(), []byte(refusedText))
		}
		if wrong && p.refuses {
			_ = p.client.Nack(r, "it has "+refusedText)
			continue
		}
		_ = p.client.Ack(r)
		if routes := statustest.RoutesOf(r); len(routes) > 0 {
			_ = p.client.Send(xdstest.Request{Type: xdstest.RDS, Names: routes})
		}
	}
	p.waiting = nil
}
