package envoy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

const telemetryRules = `kind: MeshSettings
metadata: {name: default}
spec:
  extensionProviders:
  - {name: file, envoyFileAccessLog: {path: "$DIR/all.log", logFormat: {text: "%REQ(:PATH)% %RESPONSE_CODE% %BYTES_RECEIVED%"}}}
  - {name: object, envoyFileAccessLog: {path: "$DIR/object.log", logFormat: {labels: {path: "%REQ(:PATH)%", hinted: "%DYNAMIC_METADATA(envoy.common:access_log_hint)%"}}}}
  - {name: default-format, envoyFileAccessLog: {path: "$DIR/default.log"}}
  - {name: als, envoyHttpAls: {service: spans.shop, port: 9411}}
  - {name: tcp-als, envoyTcpAls: {service: spans.shop, port: 9411}}
  - {name: zipkin, zipkin: {service: spans.shop, port: 9411, maxTagLength: 64}}
  - {name: otel, opentelemetry: {service: spans.shop, port: 9411, http: {path: /v1/traces, headers: [{name: key, value: 100%}]}}}
  - {name: otel-grpc, opentelemetry: {service: spans.shop, port: 9411, grpc: {timeout: 2s, initialMetadata: [{name: key, value: 100%}]}}}
  - {name: otlp, envoyOtelAls: {service: spans.shop, port: 9411, logFormat: {labels: {code: "%RESPONSE_CODE%"}}}}
  - {name: wrong, envoyFileAccessLog: {path: "$DIR/wrong.log", logFormat: {text: "%NO_SUCH_OPERATOR%"}}}
---
kind: Telemetry
metadata: {name: mesh, namespace: istio-system}
spec:
  accessLogging: [{providers: [{name: file}]}]
  tracing: [{providers: [{name: otel}], randomSamplingPercentage: 0}]
---
kind: Telemetry
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  accessLogging:
  - {providers: [{name: file}], match: {mode: SERVER}, filter: {expression: "response.code >= 400 || !has(response.code)"}}
  - {providers: [{name: default-format}, {name: otlp}, {name: als}, {name: tcp-als}, {name: wrong}]}
  - {providers: [{name: object}], filter: {expression: "metadata.filter_metadata['envoy.common']['access_log_hint'] == true"}}
  tracing:
  - {providers: [{name: otel-grpc}], match: {mode: CLIENT}}
  - providers: [{name: zipkin}]
    match: {mode: SERVER}
    randomSamplingPercentage: 100
    customTags:
      a: {literal: {value: fixed}}
      b: {header: {name: x-tag, defaultValue: none}}
      c: {environment: {name: NO_SUCH_VARIABLE, defaultValue: unset}}
      d: {formatter: {value: "%RESPONSE_CODE%"}}
---
kind: AuthorizationPolicy
metadata: {name: audited, namespace: shop}
spec: {action: AUDIT, selector: {matchLabels: {app: web}}, rules: [{to: [{operation: {paths: [/audited], ports: ["8080"]}}]}]}
---
kind: AuthorizationPolicy
metadata: {name: denied, namespace: shop}
spec: {action: DENY, selector: {matchLabels: {app: web}}, rules: [{to: [{operation: {paths: [/denied], ports: ["8080"]}}]}]}
---
kind: PeerAuthentication
metadata: {name: web, namespace: shop}
spec: {selector: {matchLabels: {app: web}}, mtls: {mode: STRICT}}`

// TestK26RealProxiesLog: lines come where the closest object says, for the requests that its
// expression selects; only what cannot be used is skipped. A connection that the proxy refuses has a line, too (K70).
func TestK26RealProxiesLog(t *testing.T) {
	network, authority := testbed.NewNetwork(t, "pods", "10.7.0.0/24"), testbed.NewAuthority(t, "mesh")
	endpoint := at("10.7.0.2", 8080)
	endpoint.TLSMode, endpoint.ServiceAccount = federation.MutualTLS, "shop/web"
	shard := web(endpoint)
	shard.VIPs = vips("10.96.0.1/32")
	spans := &federation.Shard{
		Ports:     []federation.Port{{Name: "http", Number: 9411, Protocol: federation.HTTP}},
		Endpoints: []federation.Endpoint{{Address: at("10.7.0.40", 1).Address, Ports: []federation.EndpointPort{{Name: "http", Number: 9411}}}},
	}
	w := newFixture().attach("c1", "").say("c1", webKey, shard).say("c1", key("spans.shop"), spans).config(t, telemetryRules)
	server, sidecar := proxied(t, network, authority, "10.7.0.2", "web", w.snapshot)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "web", Namespace: server, HTTP: []int{8080}})
	front, client := proxied(t, network, authority, "10.7.0.9", "front", w.snapshot)
	for _, path := range []string{"/fine", "/audited", "/denied"} {
		front.Get("http://10.96.0.1"+path, "X-Tag", "said")
	}
	plain, _ := pod(t, network, "10.7.0.30", nil)
	if !refusesRequests(t, plain, "10.7.0.2:8080") {
		t.Error("plain text is not refused")
	}
	for _, want := range []struct {
		of   *testbed.Envoy
		file string
		want []string
		not  string
	}{
		{client, "all.log", []string{"/fine 200 0\n", "/audited 200 0\n", "/denied 403 0\n"}, "-"},
		{sidecar, "all.log", []string{"/denied 403 0\n", "- 0 0\n"}, "200"},
		{sidecar, "default.log", []string{`"GET /fine HTTP/`, `"GET /denied HTTP/`, ` 403 - rbac_access_denied`}, ""},
		{sidecar, "object.log", []string{`"path":"/audited"`, `"hinted":true`}, "/fine"},
	} {
		text := func() string { return string(want.of.ReadFile(want.file)) }
		testbed.WaitFor(t, time.Minute, "the lines of "+want.file, func() error {
			for _, line := range want.want {
				if !strings.Contains(text(), line) {
					return fmt.Errorf("no %q in %q", line, text())
				}
			}
			return nil
		})
		if want.not != "" && strings.Contains(text(), want.not) {
			t.Errorf("%s of %s has %q: %s", want.file, want.of.Dir, want.not, text())
		}
	}
	if sidecar.ReadFile("wrong.log") != nil {
		t.Error("a format that Envoy refuses is used")
	}
}
