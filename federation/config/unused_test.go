package config

import (
	"fmt"
	"testing"

	"isthmus.dev/isthmus/federation"
)

func TestFieldsWithoutEffectAreSaid(t *testing.T) {
	for name, c := range map[string]struct{ kind, spec, want string }{
		"settings": {
			"MeshSettings",
			`{"rootNamespace":"mesh","trustDomain":"td","outboundTrafficPolicy":{"mode":"ALLOW_ANY"},"localityLoadBalancing":{"enabled":true,"later":1}}`, "[spec.localityLoadBalancing.later]",
		},
		"nodes": {
			"MeshSettings", `{"localityLoadBalancing":{"failoverPriority":["topology.istio.io/cluster","kubernetes.io/hostname"]}}`,
			"[spec.localityLoadBalancing.failoverPriority[1]]",
		},
		"a cluster": {"Cluster", `{"provider":"Kubernetes","network":"n1"}`, "[]"},
		"a network": {"Network", `{"cidrs":["10.0.0.0/8"],"gateways":[{"address":"192.0.2.1"}]}`, "[]"},
		"nothing":   {"MeshSettings", `{}`, "[]"},
	} {
		key := federation.ObjectKey{Group: federation.MeshGroup, Kind: c.kind, Name: "default"}
		h := hold(&Object{Key: key, Manifest: []byte(`{"metadata":{"name":"default"},"spec":` + c.spec + `}`)}, "cluster.local", newLabelSets())
		fields := []string{}
		for _, p := range h.Problems {
			if p.Code == "NOT_HONOURED" {
				fields = append(fields, p.Field)
			}
		}
		if got := fmt.Sprint(fields); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
