package clusters

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/hub/kinds"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/registries/consul"
	"isthmus.dev/isthmus/registries/provider"
)

// TestG76EachFieldOfAClusterHasAnEffect: another value of any field of a Cluster object has something else be
// known of the cluster, or the hub ask another server, read something else, or do something else.
func TestG76EachFieldOfAClusterHasAnEffect(t *testing.T) {
	t.Parallel()
	set, err := schema.Load(kind.Expressions)
	if err != nil {
		t.Fatal(err)
	}
	fields, err := set.Fields(federation.ClusterKind)
	if err != nil || len(fields) == 0 {
		t.Fatal("a Cluster has no fields", err)
	}
	datacenter := map[string]any{
		"provider": "Consul", "network": "n1", "precedence": 3, "aliases": []string{"one"},
		"limits.objects": 100, "limits.pages": 10, "limits.bytes": "64Mi",
		"consul.address": "http://ONE", "consul.datacenter": "dc1", "consul.hostname": "{{.Service}}.example", "consul.namespace": "shop",
		"consul.instancePort": "first", "consul.servicePort": 81,
	}
	cluster := map[string]any{
		"provider": "Kubernetes", "kubernetes.context": "one", "kubernetes.rootConfigMap": "CREATE", "kubernetes.serviceImports": true,
	}
	bySection := map[string]map[string]any{"kubernetes": cluster}
	others := map[string]any{
		"provider": "Mock", "network": "n2", "precedence": 4, "aliases": []string{"two"},
		"limits.objects": 101, "limits.pages": 11, "limits.bytes": "65Mi",
		"consul.address": "http://TWO", "consul.datacenter": "dc2", "consul.hostname": "{{.Service}}.test", "consul.namespace": "store",
		"consul.instancePort": "admin", "consul.servicePort": 82,
		"kubernetes.context": "two", "kubernetes.rootConfigMap": "OVERWRITE", "kubernetes.serviceImports": false,
	}
	for _, path := range leavesOf(fields, "") {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			base := datacenter
			if section, _, below := strings.Cut(path, "."); below && bySection[section] != nil {
				base = bySection[section]
			}
			changed := maps.Clone(base)
			changed[path] = others[path]
			if path == "provider" {
				maps.DeleteFunc(changed, func(path string, _ any) bool { return strings.HasPrefix(path, "consul.") })
			}
			if others[path] == nil || base[path] == nil {
				t.Fatal("there are no values to try")
			}
			before := effects(t, base)
			if again := effects(t, base); again != before {
				t.Errorf("the same object does\n%s\nand then\n%s", before, again)
			}
			if after := effects(t, changed); before == after {
				t.Errorf("with %v as with %v:\n%s", base[path], others[path], before)
			}
		})
	}
}

func leavesOf(fields []schema.Field, at string) (all []string) {
	for _, f := range fields {
		path := strings.TrimPrefix(at+"."+f.Name, ".")
		if len(f.Below) == 0 {
			all = append(all, path)
		}
		all = append(all, leavesOf(f.Below, path)...)
	}
	return all
}

// doings are what the hub does because of one object.
type doings struct {
	mu     sync.Mutex
	all    map[string]bool
	enough func() // ends it: nothing else would be different
}

func (d *doings) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all[fmt.Sprintf(format, args...)] = true
}

// effects are what the hub does for a cluster with the spec, whose fields are named by their paths, until it
// knows enough of it.
func effects(t *testing.T, paths map[string]any) string {
	t.Helper()
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	d := &doings{all: map[string]bool{}, enough: enough}
	one, two := d.server(t, "one", paths), d.server(t, "two", paths)
	spec := map[string]any{}
	for path, value := range paths {
		at, in := path, spec
		if section, field, below := strings.Cut(path, "."); below {
			if spec[section] == nil {
				spec[section] = map[string]any{}
			}
			at, in = field, spec[section].(map[string]any)
		}
		in[at] = value
	}
	manifest, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("http://ONE", one.URL, "http://TWO", two.URL).Replace(string(manifest))
	c, err := kinds.OfObject(&config.Object{Key: federation.ObjectKey{Name: "a"}, Manifest: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	known := c.Spec()
	d.note("known: %s %s %d %q", known.Provider, known.Network, known.Precedence, known.Aliases.List())
	m := maker{Hub: kinds.Hub{Following: d, Host: provider.Host{
		Policy: federation.AddressPolicy{AllowLoopback: true}, Logger: slog.New(slog.DiscardHandler), Ended: func(federation.ClusterID) {},
		Count: func(federation.Provider, federation.ClusterID, string) {},
		Used: func(_ federation.ClusterID, l federation.Limits) func(federation.Usage) {
			d.note("limits: %+v", l)
			return func(federation.Usage) {}
		},
	}}}
	k, err := m.Of(c.Provider)
	if err != nil {
		t.Fatal(err)
	}
	of := m.cluster(c, federation.ClusterIdentity{})
	of.Kept = &attach.Credentials{Values: map[string]kube.Secret{"kubeconfig": kube.NewSecret(kubeconfigOf(one, two))}}
	registry, err := k.Open(of)
	if err != nil {
		t.Fatal(err)
	}
	if err := registry.Run(ctx, d); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	one.Close()
	two.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(d.all)), "\n")
}

// server is a Consul with one service, or an API server that is out of order.
func (d *doings) server(t *testing.T, name string, spec map[string]any) *httptest.Server {
	t.Helper()
	const instance = `[{"Node":{"ID":"n","Node":"n","Address":"10.0.0.1","Datacenter":"dc1"},"Service":{"ID":%q,"Service":%[1]q,` +
		`"Ports":[{"Name":"http","Port":8080,"Default":true},{"Name":"admin","Port":9090}]}}]`
	answer := func(w http.ResponseWriter, r *http.Request) {
		d.note("asked: %s in %q", name, r.URL.Query().Get("dc"))
		w.Header().Set("X-Consul-Index", "9")
		service, health := strings.CutPrefix(r.URL.Path, "/v1/health/service/")
		switch {
		case r.TLS != nil:
			http.Error(w, "out of order", http.StatusServiceUnavailable)
			d.enough()
		case r.URL.Query().Get("index") == "9":
			<-r.Context().Done()
		case health:
			fmt.Fprintf(w, instance, service)
		default:
			fmt.Fprint(w, `{"consul":[],"web":[]}`)
		}
	}
	start := httptest.NewServer
	if spec["provider"] == string(federation.Kubernetes) {
		start = httptest.NewTLSServer
	}
	server := start(http.HandlerFunc(answer))
	t.Cleanup(server.Close)
	return server
}

// kubeconfigOf has a context for each server.
func kubeconfigOf(one, two *httptest.Server) string {
	text := "apiVersion: v1\nkind: Config\nusers: [{name: hub, user: {token: secret}}]\nclusters:\n"
	for name, server := range map[string]*httptest.Server{"one": one, "two": two} {
		var authority string
		if c := server.Certificate(); c != nil {
			authority = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
		}
		text += fmt.Sprintf("- {name: %s, cluster: {server: %q, certificate-authority-data: %s}}\n", name, server.URL, authority)
	}
	return text + "contexts: [{name: one, context: {cluster: one, user: hub}}, {name: two, context: {cluster: two, user: hub}}]\n"
}

// Update is part of registries.Sink.
func (d *doings) Update(e federation.Edit) {
	for key, shard := range e.Services.Set {
		d.note("service: %s %+v", key, shard.Ports)
		for _, endpoint := range shard.Endpoints {
			d.note("endpoint: %s %q %+v", key, endpoint.Network, endpoint.Ports)
		}
	}
	if e.Services.Full {
		d.enough()
	}
}

// Status is part of registries.Sink.
func (d *doings) Status(s federation.RegistryStatus) {
	if s.Phase == federation.Stale {
		d.enough() // it would try for ever
	}
}

// Attach is part of kubernetes.Following, as are the next ones.
func (d *doings) Attach(federation.ClusterID, clients.Interface, *listwatch.Cluster, bool) (detach func()) {
	return func() {}
}

func (*doings) Follow(context.Context, federation.ClusterID, *listwatch.Cluster) {}

func (d *doings) WriteRoots(_ context.Context, _ federation.ClusterID, _ *listwatch.Cluster, overwrite bool) {
	d.note("writes roots, over those of others: %v", overwrite)
}

func (d *doings) WriteImports(context.Context, federation.ClusterID, *listwatch.Cluster) {
	d.note("writes imports")
}

func (*doings) Expires(federation.ClusterID, *kube.Credentials) {}

// Prove is part of consul.Following.
func (*doings) Prove(federation.ClusterID, *consul.Workloads) (detach func()) { return func() {} }
