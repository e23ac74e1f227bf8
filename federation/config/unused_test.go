package config_test

import (
	"fmt"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
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
		o := &config.Object{Key: key, Manifest: []byte(`{"metadata":{"name":"default"},"spec":` + c.spec + `}`)}
		_, edit := config.NewState(config.Options{Hub: "hub"}).Next([]config.Event{{New: o}}, 1)
		fields := []string{}
		for _, p := range edit.Problems.Set {
			if p.Code == "NOT_HONOURED" {
				fields = append(fields, p.Field)
			}
		}
		if got := fmt.Sprint(fields); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
