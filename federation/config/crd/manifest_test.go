package crd

import (
	"os"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
)

// TestProblemsNameTheManifestThatGrantsTheKind, and the manifest does.
func TestProblemsNameTheManifestThatGrantsTheKind(t *testing.T) {
	for resource, kind := range map[string]federation.Kind{
		"virtualservices": {Group: "networking.istio.io", Name: "VirtualService"}, "drains": federation.DrainKind,
		"serviceexports": federation.ServiceExportKind, "httproutes": {Group: "gateway.networking.k8s.io", Name: "HTTPRoute"},
		"ingresses": {Group: "networking.k8s.io", Name: "Ingress"}, "configmaps": federation.ConfigMapKind,
		"namespaces": federation.NamespaceKind,
	} {
		manifest, err := os.ReadFile("../../../" + manifestOf(kind))
		if err != nil {
			t.Error(err)
		} else if _, rules, _ := strings.Cut(string(manifest), "rules:"); !strings.Contains(rules, resource) {
			t.Errorf("%s does not grant %s", manifestOf(kind), resource)
		}
	}
}
