package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/xdstest"
)

// reportedEntries are WorkloadEntries of a service; the health of the first is what its agent reports.
const reportedEntries = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ledger, namespace: shop}
spec:
  hosts: [ledger.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  workloadSelector: {labels: {app: ledger}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: reports, namespace: shop, annotations: {proxy.istio.io/health-checks-enabled: "true"}}
spec: {address: 10.77.0.2, labels: {app: ledger}, serviceAccount: ledger}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: plain, namespace: shop}
spec: {address: 10.77.0.3, labels: {app: ledger}, serviceAccount: ledger}
`

func (h *hubUnderTest) applyReported(t *testing.T) {
	t.Helper()
	h.applyManifests(t, reportedEntries)
}

func (h *hubUnderTest) applyManifests(t *testing.T, manifests string) {
	t.Helper()
	var made struct {
		Apply struct{ UserErrors []struct{ Message string } }
	}
	err := h.query(fmt.Sprintf(`mutation { apply(input: {manifests: [%q]}) { userErrors { message } } }`, manifests), &made)
	if err != nil || len(made.Apply.UserErrors) > 0 {
		t.Fatalf("%+v, %v", made, err)
	}
}

// awaitHealth waits until the hub shows that health of the first workload, and the other healthy.
func (h *hubUnderTest) awaitHealth(t *testing.T, when, want string) {
	t.Helper()
	h.await(t, when+" to be "+want, func() error {
		var answer struct {
			Service *struct {
				Endpoints struct {
					Nodes []struct{ Address, Health string }
				}
			}
		}
		err := h.query(`{service(hostname: "ledger.example", namespace: "shop") {endpoints(first: 100) {nodes {address health}}}}`, &answer)
		if err != nil || answer.Service == nil {
			return fmt.Errorf("%+v, %w", answer, err)
		}
		if got := fmt.Sprint(answer.Service.Endpoints.Nodes); got != "[{10.77.0.2 "+want+"} {10.77.0.3 HEALTHY}]" {
			return fmt.Errorf("they are %s", got)
		}
		return nil
	})
}

// agent opens a stream of the agent of the first WorkloadEntry.
func (p *program) agent(t *testing.T) *xdstest.Client {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+filepath.Join(p.dir, "xds"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	said, err := structpb.NewStruct(map[string]any{"NAMESPACE": "shop", "SERVICE_ACCOUNT": "ledger", "WORKLOAD_ENTRY": "reports"})
	must(t, err)
	c, err := xdstest.Open(t.Context(), conn, xdstest.Options{Delta: true, Node: &corev3.Node{
		Id: "sidecar~10.77.0.2~vm-1.shop~shop.svc.cluster.local", Metadata: said,
	}})
	must(t, err)
	t.Cleanup(c.Close)
	must(t, c.Send(xdstest.Request{Type: xdstest.CDS}))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = c.Receive(ctx)
	must(t, err)
	return c
}

// healthReport is the type of what Istio's agent reports about the health of its workload.
const healthReport = "type.googleapis.com/istio.v1.HealthInformation"

// report is what Istio's agent sends; unhealthy is the reason, or empty.
func report(t *testing.T, c *xdstest.Client, unhealthy string) {
	t.Helper()
	must(t, c.Send(xdstest.Request{Type: healthReport, Error: unhealthy}))
}

// TestM16HubsOfOneStoreShareReports: what an agent reports at one hub is in force at all that share a real etcd, and ends
// when that hub is killed, until the agent reports at another.
func TestM16HubsOfOneStoreShareReports(t *testing.T) {
	t.Parallel()
	store := testbed.StartEtcd(t, testbed.EtcdOptions{})
	key := filepath.Join(shortDir(t), "seal.key")
	var hubs [2]*program
	for i := range hubs {
		hubs[i] = startProgramIn(t, shortDir(t), "--etcd-endpoints", store.URL, "--seal-key", key)
	}
	both := func(when, want string) {
		t.Helper()
		for _, p := range hubs {
			p.at().awaitHealth(t, when, want)
		}
	}
	hubs[0].at().applyReported(t)
	both("without an agent", "UNHEALTHY")
	agent := hubs[0].agent(t)
	report(t, agent, "")
	both("reported healthy", "HEALTHY")
	report(t, agent, "connection refused")
	both("reported unhealthy", "UNHEALTHY")
	report(t, agent, "")
	both("reported healthy again", "HEALTHY")
	must(t, hubs[0].Process.Kill())
	hubs[1].at().awaitHealth(t, "after the hub of its agent was killed", "UNHEALTHY")
	moved := hubs[1].agent(t)
	report(t, moved, "")
	hubs[1].at().awaitHealth(t, "reported at the other hub", "HEALTHY")
	moved.Close()
	hubs[1].at().awaitHealth(t, "after its agent left", "UNHEALTHY")
}

// TestK78HostileReports: clients with certificates of the mesh claim to be the agent of another's WorkloadEntry. They are
// refused, and the health stays what its own agent reported. One that floods the hub with reports loses its stream.
func TestK78HostileReports(t *testing.T) {
	t.Parallel()
	p := startSecureProgram(t, "true", "")
	p.applyReported(t)
	p.awaitHealth(t, "without an agent", "UNHEALTHY")
	agentOf := func(account, id, entry string) *xdstest.Client {
		return p.openNode(t, p.connectionOf(t, "127.0.0.1", account), id, map[string]any{"SERVICE_ACCOUNT": account, "WORKLOAD_ENTRY": entry})
	}
	const own = "sidecar~10.77.0.2~vm-1.shop~shop.svc.cluster.local"
	owner := agentOf("ledger", own, "reports")
	report(t, owner, "")
	p.awaitHealth(t, "reported by its agent", "HEALTHY")
	for name, c := range map[string]struct {
		account, id, entry string
		code               codes.Code
		says               string
	}{
		"another account":          {"web", own, "reports", codes.PermissionDenied, "shop/ledger"},
		"another address":          {"ledger", strings.Replace(own, "77.0.2", "77.0.3", 1), "reports", codes.PermissionDenied, "10.77.0.3"},
		"a second proxy":           {"ledger", strings.Replace(own, "vm-1", "vm-2", 1), "reports", codes.FailedPrecondition, "another proxy"},
		"an entry that is missing": {"ledger", own, "missing", codes.FailedPrecondition, "shop/missing"},
		"an entry as a path":       {"ledger", own, "../bank/reports", codes.FailedPrecondition, "no WorkloadEntry"},
	} {
		c2 := agentOf(c.account, c.id, c.entry)
		_ = c2.Send(xdstest.Request{Type: healthReport, Error: "hostile"}) // a stream that is over says so below
		if err := p.endOf(t, c2); status.Code(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the stream ends with %v", name, err)
		}
	}
	p.awaitHealth(t, "after all that", "HEALTHY")
	for range 5000 {
		_ = owner.Send(xdstest.Request{Type: healthReport, Error: "flood"}) // after the end it fails
	}
	if err := p.endOf(t, owner); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a flood of reports ends with %v", err)
	}
	again := agentOf("ledger", own, "reports")
	report(t, again, "")
	p.awaitHealth(t, "reported after the flood", "HEALTHY")
}

// TestK79AgentsBehindGatewaysWithEntries: an agent reports through a gateway that has a WorkloadEntry in the network of its own,
// with another account. From the address of a machine with its own account, it is refused.
func TestK79AgentsBehindGatewaysWithEntries(t *testing.T) {
	t.Parallel()
	p := startSecureProgram(t, "true", "")
	p.applyReported(t)
	p.applyManifests(t, `
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: gateway, namespace: infra}
spec: {address: 127.0.0.77, serviceAccount: gateway}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: sibling, namespace: shop}
spec: {address: 127.0.0.78, serviceAccount: ledger}
`)
	agentFrom := func(source string) *xdstest.Client {
		return p.openNode(t, p.connectionOf(t, source, "ledger"), "sidecar~10.77.0.2~vm-1.shop~shop.svc.cluster.local",
			map[string]any{"SERVICE_ACCOUNT": "ledger", "WORKLOAD_ENTRY": "reports"})
	}
	sibling := agentFrom("127.0.0.78")
	_ = sibling.Send(xdstest.Request{Type: healthReport}) // a stream that is over says so below
	if err := p.endOf(t, sibling); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "a service account of its own") {
		t.Errorf("from the address of a machine with its account, its stream ends with %v", err)
	}
	p.awaitHealth(t, "after it was refused", "UNHEALTHY")
	report(t, agentFrom("127.0.0.77"), "")
	p.awaitHealth(t, "reported through the gateway", "HEALTHY")
}
