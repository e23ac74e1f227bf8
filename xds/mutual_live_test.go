package xds

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

const meshWorkload = "spiffe://cluster.local/ns/shop/sa/web"

// anybody says that every caller is the one workload.
type anybody struct{}

func (anybody) Identify(context.Context) (Caller, error) {
	return Caller{Proven: true, Admit: func(envoy.Node) (string, error) { return meshWorkload, nil }}, nil
}

func takingMutual(resolution federation.Resolution, address string) *federation.Shard {
	var at federation.Address
	if err := at.UnmarshalText([]byte(address)); err != nil {
		panic(err)
	}
	return &federation.Shard{
		Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}}, Resolution: resolution,
		Endpoints: []federation.Endpoint{{
			Address: at, TLSMode: federation.MutualTLS, ServiceAccount: "shop/web", Health: federation.Healthy,
			Ports: []federation.EndpointPort{{Name: "http", Number: 8080}},
		}},
	}
}

// newMeshProxy is an Envoy whose metadata says that its identity is the hub's.
func newMeshProxy(t *testing.T, api string) *real {
	keys := newFakeSecrets()
	own := SecretRef{Cluster: "c1", Namespace: "shop", Workload: meshWorkload, Node: node("web-1").Id}
	roots := own
	roots.Authorities = true
	authority := testbed.NewAuthority(t, "mesh")
	chain, private := authority.Issue(testbed.Subject{Hosts: []string{meshWorkload}})
	keys.byRef[own] = Secret{Fingerprint: "own", Material: transport.KeyMaterial{Chain: chain, Key: private}}
	keys.byRef[roots] = Secret{Fingerprint: "roots", Material: transport.KeyMaterial{Authorities: authority.PEM}}
	return startMeshProxy(t, keys, "NODE", node("web-1").Id, "API", api, "INTERCEPTION_MODE: REDIRECT",
		"INTERCEPTION_MODE: REDIRECT, IDENTITY_SOURCE: ads")
}

// startMeshProxy starts the hub and the Envoy, whose bootstrap is changed in pairs of
// what there is and what comes in its place.
func startMeshProxy(t *testing.T, keys *fakeSecrets, change ...string) *real {
	dir, err := os.MkdirTemp("", "mesh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	a := federation.NewAggregate(nil)
	r := &real{t: t, writer: a.Open(source1), fleet: fleet.New(), socket: filepath.Join(dir, "hub")}
	r.set(serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{
		key("web"): takingMutual(federation.ClientSideLB, "10.1.0.1"), key("named"): takingMutual(federation.DNSLB, "web.invalid"),
	}})
	r.server = New(Options{
		Snapshots: a, Fleet: r.fleet, Metrics: r, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Secrets: keys,
		Access: anybody{}, timing: &patient,
	})
	r.serve()
	t.Cleanup(func() { r.stop() })
	config := strings.NewReplacer(append(change, "SOCKET", r.socket)...).Replace(bootstrap)
	r.pod = testbed.NewNamespace(t, "mesh")
	r.envoy = testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "mesh", Config: []byte(config), Namespace: r.pod})
	r.envoy.WaitReady(3 * patience)
	return r
}

// secretsOf are the secrets that the Envoy has.
func (r *real) secretsOf() ([]string, error) {
	body, err := r.envoy.Admin("/config_dump?resource=dynamic_active_secrets")
	if err != nil {
		return nil, err
	}
	var dump struct {
		Configs []struct{ Name string }
	}
	if err := json.Unmarshal(body, &dump); err != nil {
		return nil, err
	}
	var names []string
	for _, c := range dump.Configs {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// An Envoy with an identity gets its clusters, those found by DNS too, its
// listeners, and the two secrets that all of them refer to, over one stream.
func TestEnvoyGetsItsIdentityBesideItsClusters(t *testing.T) {
	for _, api := range []string{"DELTA_GRPC", "GRPC"} {
		t.Run(api, func(t *testing.T) {
			r := newMeshProxy(t, api)
			r.await("the clusters", r.hasClusters(cluster("named"), cluster("web")))
			r.await("the secrets", func() error {
				names, err := r.secretsOf()
				if err == nil && !slices.Equal(names, []string{"ROOTCA", "default"}) {
					return fmt.Errorf("the secrets are %q", names)
				}
				return err
			})
			r.await("everything to be accepted", r.inSync)
			if at := r.first(Nacked, envoy.ClusterType); at >= 0 {
				t.Error("the Envoy refused clusters")
			}
		})
	}
}
