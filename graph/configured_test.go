package graph_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest/memory"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
)

const (
	networking  = "networking.istio.io"
	routeDomain = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: %s, namespace: %s, labels: {app: %s, isthmus.dev/set: %s}, creationTimestamp: \"2026-11-20T00:00:00Z\", managedFields: [{manager: ops}]}\nspec: {hosts: [%s.example.com]}"
)

func route(namespace, name, app string) string {
	return fmt.Sprintf(routeDomain, name, namespace, app, "of-"+app, name)
}

func routes(manifests ...string) string { return strings.Join(manifests, "\n---\n") }

func routeKey(namespace, name string) federation.ObjectKey {
	return federation.ObjectKey{Group: networking, Kind: "VirtualService", Namespace: namespace, Name: name}
}

// configured is a hub with a store, a file that has shop/hidden and shop/filed,
// and an engine.
type configured struct {
	hub
	engine  *engine
	mesh    *federation.Aggregate
	options graph.Options
}

var routeKinds = []federation.Kind{
	{Group: networking, Name: "VirtualService"},
	{Group: networking, Name: "WorkloadEntry"},
	{Group: networking, Name: "ServiceEntry"},
	federation.ClusterKind,
	federation.NetworkKind,
	federation.DrainKind,
	federation.GatewayKind,
}

// newConfigured makes it; change may alter the options.
func newConfigured(t testing.TB, change func(*graph.Options)) configured {
	t.Helper()
	c := configured{mesh: federation.NewAggregate(nil), engine: &engine{store: memory.New(routeKinds...)}}
	file := configSource{kinds: routeKinds, objects: []*config.Object{
		stored(t, route("shop", "hidden", "x")),
		stored(t, route("shop", "filed", "x")),
	}}
	file.trouble = []config.Problem{{Code: "UNDECODABLE", Object: "b.yaml", Field: "spec", Message: "no YAML"}}
	writer := c.mesh.Open(federation.ShardKey{Cluster: "hub", Provider: federation.External})
	c.engine.objects = config.NewAggregate(config.Options{Hub: "hub"}, writer, slog.New(slog.DiscardHandler),
		config.Named{Name: "etcd", Source: c.engine.store}, config.Named{Name: "file /etc/isthmus", Source: file})
	run(t, c.engine.objects)
	v, err := c.engine.objects.WaitSynced(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for ; len(v.Sources[1].Trouble) == 0; v = c.engine.objects.Latest() { // it is reported after the objects
		<-v.Superseded()
	}
	c.options = graph.Options{
		Snapshots: c.mesh, Hub: model.Hub{Version: "test", ClusterID: "hub"}, Now: func() time.Time { return time.Now().Add(time.Minute) },
		Config: graph.Config{
			Changer: c.engine, Objects: c.engine.objects, History: c.engine.store, ObjectHistory: c.engine,
			Registrar: c.engine, Leases: c.engine.store,
			Kinds: []schema.Kind{{
				Kind: routeKinds[0], Plural: "virtualservices", ShortNames: []string{"vs"}, Namespaced: true,
				Versions: []string{"v1", "v1beta1"}, Storage: "v1",
			}},
			Epoch: "store-1",
		},
	}
	if change != nil {
		change(&c.options)
	}
	c.hub = hubWith(t, c.options)
	return c
}

func input(fields map[string]any) map[string]any { return map[string]any{"input": fields} }

// apply applies manifests and fails the test where they are refused.
func (c configured) apply(manifests string) {
	c.t.Helper()
	data := c.answer(`mutation($input:ApplyInput!){apply(input:$input){revision userErrors{message}}}`,
		input(map[string]any{"manifests": manifests}))
	c.want(data, []any{}, "apply", "userErrors")
}

// delete deletes a route and fails the test where that is refused.
func (c configured) delete(namespace, name string) {
	c.t.Helper()
	data := c.answer(`mutation($input:DeleteInput!){delete(input:$input){userErrors{message}}}`, input(map[string]any{
		"objects": []any{map[string]any{"group": networking, "kind": "VirtualService", "namespace": namespace, "name": name}},
	}))
	c.want(data, []any{}, "delete", "userErrors")
}
