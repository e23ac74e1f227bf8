package writeback_test

import (
	"fmt"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

const mutualGateway = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: mutual, namespace: shop}
spec:
  gatewayClassName: isthmus
  tls: {backend: {clientCertificateRef: {name: %s}}}
  listeners: [{name: http, port: 8081, protocol: HTTP}]
`

// secretsOfStatus (G83): the hub that writes the status of a Gateway looks for its Secrets without any proxy, and
// only as long as it writes it.
func secretsOfStatus(t *testing.T, server *testbed.Kube) {
	r := newRig(t, server.Admin, true)
	follows := func(secret string, want int) {
		t.Helper()
		testbed.WaitFor(t, 5*time.Minute, "the Secrets that are followed", func() error {
			if got := r.proxies.follows("c1/shop/" + secret); got != want {
				return fmt.Errorf("%s is followed %d times, want %d", secret, got, want)
			}
			return nil
		})
	}
	r.proxies.set(func() { r.proxies.missing = map[string]string{"c1/shop/lost": "no source has it"} })
	server.Apply(fmt.Sprintf(mutualGateway, "lost"))
	r.read(written)
	const path = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/gateways/mutual"
	says(t, server, path, `"reason":"NoResources"`, `"reason":"InvalidClientCertificateRef"`, "the Secret shop/lost: no source has it")
	r.leader.set(false)
	follows("lost", 0)
	r.leader.set(true)
	follows("lost", 1)
	server.Apply(fmt.Sprintf(mutualGateway, "kept"))
	says(t, server, path, `"observedGeneration":2,"reason":"ResolvedRefs"`)
	follows("lost", 0)
	follows("kept", 1)
	r.read(`{"sources":[{"cluster":"c1","namespaces":["*"]}]}`)
	follows("kept", 0)
	r.read(written)
	follows("kept", 1)
	server.Delete(fmt.Sprintf(mutualGateway, "kept"))
	follows("kept", 0)
}
