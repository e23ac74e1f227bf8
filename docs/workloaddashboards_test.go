package docs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

const ingressOfWorld = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: front, namespace: istio-system}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: world, namespace: default}
spec:
  hosts: ["*"]
  gateways: [istio-system/front]
  http: [{route: [{destination: {host: world.default.svc.cluster.local, port: {number: 80}}}]}]
`

// seriesOfProxies are what proxies with Istio's filters count of the configuration that a hub sends to them: hello and world call each
// other, with a sidecar at both ends; each calls one of the other without a sidecar, and is called by somebody without one; and
// requests come through an ingress gateway.
func seriesOfProxies(t *testing.T) []series {
	t.Helper()
	config := write(t, filepath.Join(shortDir(t), "isthmus.yaml"), []byte("clusters:\n- {id: c1, provider: Mock}\n"))
	h := startHub(t, "--config", config)
	applyTo(t, h, ingressOfWorld)
	hello := proxyOf(t, h, "sidecar", "10.1.1.1", "default", "hello-v0", map[string]any{"app": "hello", "version": "v0"})
	world := proxyOf(t, h, "sidecar", "10.1.2.1", "default", "world-v0", map[string]any{"app": "world", "version": "v0"})
	ingress := proxyOf(t, h, "router", "10.1.9.9", "istio-system", "istio-ingressgateway", map[string]any{"istio": "ingressgateway"})
	ofHello, ofWorld, ofIngress := hello.told("hello"), world.told("world"), ingress.told("ingress")
	var all []series
	for _, port := range []struct {
		number, target string
		requests       bool
	}{{"80", "1080", true}, {"90", "1090", false}} {
		toHello, toWorld := "outbound|"+port.number+"||hello.default.svc.cluster.local", "outbound|"+port.number+"||world.default.svc.cluster.local"
		inside := "inbound|" + port.target + "||"
		hello.counts(t, corev3.TrafficDirection_OUTBOUND, toWorld, port.requests)
		world.counts(t, corev3.TrafficDirection_OUTBOUND, toHello, port.requests)
		hello.counts(t, corev3.TrafficDirection_INBOUND, inside, port.requests)
		world.counts(t, corev3.TrafficDirection_INBOUND, inside, port.requests)
		for _, x := range []struct {
			at *countingProxy
			transfer
		}{
			{hello, transfer{"source", toWorld, ofHello, ofWorld, port.requests, unknown}},
			{world, transfer{"destination", inside, ofHello, ofWorld, port.requests, "mutual_tls"}},
			{world, transfer{"source", toHello, ofWorld, ofHello, port.requests, unknown}},
			{hello, transfer{"destination", inside, ofWorld, ofHello, port.requests, "mutual_tls"}},
			{hello, transfer{"source", toWorld, ofHello, hello.behind(t, toWorld, "10.1.2.2"), port.requests, unknown}},
			{world, transfer{"source", toHello, ofWorld, world.behind(t, toHello, "10.1.1.2"), port.requests, unknown}},
			{world, transfer{"destination", inside, party{}, ofWorld, port.requests, "none"}},
			{hello, transfer{"destination", inside, party{}, ofHello, port.requests, "none"}},
		} {
			all = append(all, x.at.series(t, x.transfer)...)
		}
	}
	toWorld := "outbound|80||world.default.svc.cluster.local"
	ingress.counts(t, corev3.TrafficDirection_OUTBOUND, toWorld, true)
	return append(all, ingress.series(t, transfer{"source", toWorld, ofIngress, ofWorld, true, unknown})...)
}

func applyTo(t *testing.T, h *hub, manifests string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary.Path(t), "apply", "-f", "-")
	cmd.Stdin, cmd.Env = strings.NewReader(manifests), append(os.Environ(), "ISTHMUS_SERVER=unix:"+h.socket)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// choices are what a reader chooses in the dashboards: each workload, and what either proxy counts.
var choices = []*strings.Replacer{
	choice("world-v0", "world.default.svc.cluster.local", "destination"), choice("world-v0", "hello.default.svc.cluster.local", "source"),
}

func choice(workload, service, reporter string) *strings.Replacer {
	return strings.NewReplacer("$__rate_interval", "5m", "$namespace", "default", "$workload", workload, "$service", service, "$qrep", reporter,
		"$srcns", ".*", "$srcwl", ".*", "$dstsvc", ".*", "$dstns", ".*", "$dstwl", ".*", "$srccluster", ".*", "$dstcluster", ".*")
}

// notOfProxies are queries about what no proxy writes: what containers use, and what the control plane says.
var notOfProxies = regexp.MustCompile(`container_|istio_build|app="istiod"`)

// byClients are queries for what clients know about the security of a connection. Istio's filter writes "unknown" there, so
// that these give nothing with Istio, either.
var byClients = regexp.MustCompile(`reporter=~?"source"[^}]*connection_security_policy="mutual_tls"|connection_security_policy="mutual_tls"[^}]*reporter=~?"source"`)

// TestM17WorkloadDashboardsShowData: of what proxies with Istio's filters count, each panel of Istio's
// dashboards about workloads, services and the mesh has a value, and so has each list to choose from.
func TestM17WorkloadDashboardsShowData(t *testing.T) {
	t.Parallel()
	test := seriesTests{Interval: "1m", InputSeries: seriesOfProxies(t)}
	for _, name := range []string{toolset.WorkloadDashboard, toolset.ServiceDashboard, toolset.MeshDashboard, toolset.PerformanceDashboard} {
		asked := 0
		for _, query := range queriesOf(t, testbed.IstioDashboard(t, name)) {
			if notOfProxies.MatchString(query) {
				continue
			}
			for _, with := range choices {
				if chosen := with.Replace(query); !byClients.MatchString(chosen) {
					test.Queries = append(test.Queries, hasData(chosen))
					asked++
				}
			}
		}
		t.Logf("%s: %d queries", name, asked)
		if asked < 2 {
			t.Errorf("%s: it has %d queries", name, asked)
		}
	}
	checkQueries(t, nil, test)
}

// queriesOf are those of a dashboard's panels and of its variables.
func queriesOf(t *testing.T, dashboard []byte) []string {
	t.Helper()
	type panel struct {
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
		Panels []panel `json:"panels"`
	}
	var d struct {
		Panels     []panel `json:"panels"`
		Templating struct {
			List []struct {
				Type  string `json:"type"`
				Query any    `json:"query"`
			} `json:"list"`
		} `json:"templating"`
	}
	if err := json.Unmarshal(dashboard, &d); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, v := range d.Templating.List {
		if text, _ := v.Query.(string); v.Type == "query" {
			all = append(all, strings.TrimSuffix(strings.TrimPrefix(text, "query_result("), ")"))
		}
	}
	for panels := d.Panels; len(panels) > 0; panels = panels[1:] {
		panels = append(panels, panels[0].Panels...)
		for _, target := range panels[0].Targets {
			if target.Expr != "" {
				all = append(all, target.Expr)
			}
		}
	}
	return all
}

// labelsOfKiali are those without which Kiali ignores a series, of requests and connections alike.
const labelsOfKiali = "source_cluster,source_workload_namespace,source_workload,source_canonical_service,source_canonical_revision," +
	"destination_cluster,destination_service_namespace,destination_service,destination_service_name,destination_workload_namespace," +
	"destination_workload,destination_canonical_service,destination_canonical_revision,request_protocol,response_flags"

// TestM18KialiDrawsTheGraph: of what proxies with Istio's filters count, each edge of Kiali's graph has the labels without which
// Kiali ignores it, and who is at its ends.
func TestM18KialiDrawsTheGraph(t *testing.T) {
	t.Parallel()
	test := seriesTests{Interval: "1m", InputSeries: seriesOfProxies(t)}
	ends := func(source, service, workload string, value float64) sample {
		return sample{Labels: `{source_workload="` + source + `", destination_service_name="` + service + `", destination_workload="` + workload + `"}`, Value: value}
	}
	sidecars := []sample{ends("hello-v0", "world", "world-v0", 1), ends("hello-v0", "world", "world-v1", 1), ends("world-v0", "hello", "hello-v0", 1), ends("world-v0", "hello", "hello-v1", 1)}
	for metric, want := range map[string][]sample{
		"istio_requests_total":       append([]sample{ends("istio-ingressgateway", "world", "world-v0", 1)}, sidecars...),
		"istio_tcp_sent_bytes_total": sidecars,
	} {
		// The edges of the graph: what clients count, in every namespace.
		known := strings.ReplaceAll(labelsOfKiali, ",", `!="",`) + `!="",source_workload!="unknown",source_cluster!="unknown",destination_cluster!="unknown"`
		test.Queries = append(test.Queries, queryTest{
			Expr: "sum by (source_workload,destination_service_name,destination_workload) (rate(" + metric +
				`{reporter="source",` + known + `}[5m]))`, EvalTime: "5m", ExpSamples: want,
		})
		// Callers without a proxy: what servers count.
		test.Queries = append(test.Queries, queryTest{
			Expr: "sum by (destination_workload) (rate(" + metric +
				`{reporter="destination",source_workload="unknown",destination_workload_namespace="default"}[5m]))`, EvalTime: "5m",
			ExpSamples: []sample{{Labels: `{destination_workload="hello-v0"}`, Value: 1}, {Labels: `{destination_workload="world-v0"}`, Value: 1}},
		})
		// The padlock of an edge: who called whom with mutual TLS.
		test.Queries = append(test.Queries, queryTest{
			Expr: "sum by (source_principal,destination_principal) (rate(" + metric +
				`{reporter="destination",connection_security_policy="mutual_tls",destination_service_name="world"}[5m]))`, EvalTime: "5m",
			ExpSamples: []sample{{
				Labels: `{source_principal="spiffe://cluster.local/ns/default/sa/hello", destination_principal="spiffe://cluster.local/ns/default/sa/world"}`,
				Value:  1,
			}},
		})
	}
	checkQueries(t, nil, test)
}
