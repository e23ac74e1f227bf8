package supported

import "isthmus.dev/isthmus/federation"

// A ProxyConfig is for what starts proxies, in Istio its injector (K58). Nothing of it can be
// changed while a proxy runs.
var _ = add(row{
	kind: federation.ProxyConfigKind,
	idle: notStarted,
	table: &table{refused: map[string]string{
		"selector":             notStarted,
		"concurrency":          "Envoy has its threads from its command line: start it with --concurrency; Istio's agent takes concurrency of the annotation proxy.istio.io/config",
		"environmentVariables": "the hub does not start proxies: set the variables where you do; ISTIO_META_NAME of Istio's agent becomes NAME of the node's metadata",
		"image":                "the hub does not start proxies: choose the image where you do; Istio's injector takes the annotation sidecar.istio.io/proxyImageType",
	}},
})

const notStarted = "the hub does not start proxies: proxies take their own settings from where they are started"
