package xds

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/xdstest"
)

// watcher is a raw client that asked for everything and tells what a change
// touches.
type watcher struct {
	client
	hub   *hub
	known map[string]map[string]string // type, name: bytes
}

// fence is a service on a port of its own, whose routes come last.
const fence = "8181"

func (h *hub) watch(delta bool, assignments ...string) *watcher {
	h.t.Helper()
	w := &watcher{client: h.client(xdstest.Options{Delta: delta}), hub: h, known: map[string]map[string]string{}}
	for _, q := range []xdstest.Request{
		{Type: xdstest.CDS}, {Type: xdstest.EDS, Names: assignments}, {Type: xdstest.LDS}, {Type: xdstest.RDS, Names: []string{"80", fence}},
	} {
		w.known[q.Type] = map[string]string{}
		w.learn(w.get(q))
	}
	return w
}

// learn returns the names whose bytes are new, and those that are gone but for
// endpoints, for which one variant has no word.
func (w *watcher) learn(r xdstest.Response) (touched []string) {
	known := w.known[r.Type]
	for name, res := range r.Resources {
		if known[name] != string(res.GetValue()) {
			touched = append(touched, name)
		}
		known[name] = string(res.GetValue())
	}
	for name := range known {
		_, there := r.Resources[name]
		rooted := r.Type == xdstest.CDS || r.Type == xdstest.LDS
		if rooted && !there && (r.Versions == nil || slices.Contains(r.Removed, name)) {
			touched = append(touched, name)
			delete(known, name)
		}
	}
	return touched
}

// change makes the edit and returns what the client saw of it: TYPE NAME, without
// what comes after all that the edit can have caused.
func (w *watcher) change(e federation.Edit) (touched []string) {
	w.t.Helper()
	w.hub.writer.Update(e)
	last := httpShard(200)
	last.Ports[0].Number = 8181
	w.hub.set(serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{key("fence"): last}})
	marks := []string{"outbound|8181||fence.shop.svc.cluster.local", "0.0.0.0_8181", fence}
	for {
		r := w.any()
		w.ack(r)
		for _, name := range w.learn(r) {
			if !slices.Contains(marks, name) {
				touched = append(touched, shortTypes[r.Type]+" "+name)
			}
		}
		if _, done := r.Resources[fence]; done {
			slices.Sort(touched)
			return touched
		}
	}
}

// any returns the next response of whatever type.
func (w *watcher) any() xdstest.Response {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := w.Receive(ctx)
	if err != nil {
		w.t.Fatalf("waiting for any response: %v", err)
	}
	return r
}

var shortTypes = map[string]string{xdstest.CDS: "CDS", xdstest.EDS: "EDS", xdstest.LDS: "LDS", xdstest.RDS: "RDS"}

func rule(t testing.TB, name, spec string) federation.Edit {
	t.Helper()
	k := federation.ObjectKey{Group: "networking.istio.io", Kind: "DestinationRule", Namespace: "shop", Name: name}
	if spec == "" {
		return federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{Gone: []federation.ObjectKey{k}}}
	}
	m := &networking.DestinationRule{}
	if err := protojson.Unmarshal([]byte(spec), m); err != nil {
		t.Fatal(err)
	}
	o := &federation.Object{Key: k, Digest: spec, Names: []string{m.GetHost()}, Spec: m}
	return federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{k: o}}}
}

func labelled(name string, labels ...string) federation.Edit {
	shard := httpShard()
	for i, label := range labels {
		e := httpShard(i + 2).Endpoints[0]
		e.Labels = map[string]string{"version": label}
		shard.Endpoints = append(shard.Endpoints, e)
	}
	return federation.Edit{Services: serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{key(name): shard}}}
}

func named(hosts ...string) federation.Edit {
	shard := httpShard()
	shard.Resolution = federation.DNSLB
	for _, host := range hosts {
		var a federation.Address
		_ = a.UnmarshalText([]byte(host))
		shard.Endpoints = append(shard.Endpoints, federation.Endpoint{Address: a, Ports: []federation.EndpointPort{{Name: "http", Number: 80}}})
	}
	return federation.Edit{Services: serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{key("named"): shard}}}
}

const webRule = `{"host": "web.shop.svc.cluster.local", "trafficPolicy": {"loadBalancer": {"simple": %q}},
	"subsets": [{"name": "v1", "labels": {"version": "v1"}}, {"name": "v2", "labels": {"version": %q}}]}`

// What a raw client sees of a change: endpoints of a STATIC service are their
// assignments alone, those of a DNS service their clusters alone, and a
// DestinationRule is about the clusters of its host and the endpoints of its
// subsets alone.
func TestPushRules(t *testing.T) {
	edits := map[string]struct {
		edit func(*testing.T) federation.Edit
		want []string
	}{
		"STATIC endpoint": {
			func(*testing.T) federation.Edit { return labelled("web", "v1", "v1", "v2") },
			[]string{"EDS " + cluster("web"), "EDS " + subsetOf("web", "v1"), "EDS " + subsetOf("web", "v2")},
		},
		"STATIC endpoint of one subset": {
			func(*testing.T) federation.Edit { return labelled("web", "v1", "v2", "v2") },
			[]string{"EDS " + cluster("web"), "EDS " + subsetOf("web", "v2")},
		},
		"DNS endpoint": {
			func(*testing.T) federation.Edit { return named("a.example.com", "b.example.com") },
			[]string{"CDS " + cluster("named")},
		},
		"policy": {
			func(t *testing.T) federation.Edit { return rule(t, "web", fmt.Sprintf(webRule, "RANDOM", "v2")) },
			[]string{"CDS " + subsetOf("web", "v1"), "CDS " + subsetOf("web", "v2"), "CDS " + cluster("web")},
		},
		"labels of a subset": {
			func(t *testing.T) federation.Edit { return rule(t, "web", fmt.Sprintf(webRule, "LEAST_REQUEST", "v1")) },
			[]string{"EDS " + subsetOf("web", "v2")},
		},
		"a rule that nothing is in": {func(t *testing.T) federation.Edit {
			return rule(t, "other", `{"host": "other.shop.svc.cluster.local"}`)
		}, nil},
		"a rule of a stranger": {func(t *testing.T) federation.Edit {
			return rule(t, "other", `{"host": "other.shop.svc.cluster.local", "trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}}}`)
		}, []string{"CDS " + cluster("other")}},
		"the rule goes": {
			func(t *testing.T) federation.Edit { return rule(t, "web", "") },
			[]string{"CDS " + subsetOf("web", "v1"), "CDS " + subsetOf("web", "v2"), "CDS " + cluster("web")},
		},
	}
	bothVariants(t, func(t *testing.T, delta bool) {
		for name, c := range edits {
			t.Run(name, func(t *testing.T) {
				h := newHub(t)
				h.writer.Update(labelled("web", "v1", "v2"))
				h.writer.Update(labelled("other", "v1"))
				h.writer.Update(named("a.example.com"))
				h.writer.Update(rule(t, "web", fmt.Sprintf(webRule, "LEAST_REQUEST", "v2")))
				w := h.watch(delta, cluster("web"), cluster("other"), subsetOf("web", "v1"), subsetOf("web", "v2"))
				got := w.change(c.edit(t))
				slices.Sort(c.want)
				if !slices.Equal(got, c.want) {
					t.Errorf("it touches %q, want %q", got, c.want)
				}
			})
		}
	})
}
