package service_test

import (
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// declared is a service for web.example.com: NAMESPACE, or NAMESPACE/OPTION,OPTION.
func declared(text string) *federation.Service {
	namespace, options, _ := strings.Cut(text, "/")
	s := &federation.Service{
		Key:     federation.ServiceKey{Hostname: "web.example.com", Namespace: namespace},
		Created: time.Unix(100, 0),
		Ports:   []federation.ServicePort{{Number: 80, Protocol: federation.HTTP}},
	}
	provider := federation.External
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "old":
			s.Created = time.Unix(1, 0)
		case "udp":
			s.Ports[0].Protocol = federation.UDP
		case "cluster":
			provider = federation.Kubernetes
		}
	}
	s.Endpoints = []federation.ShardEndpoints{{Shard: federation.ShardKey{Cluster: "c", Provider: provider}}}
	return s
}

func TestFirstOwner(t *testing.T) {
	for name, test := range map[string]struct {
		services    string
		own, unseen string
		owner       string
		losers      string
	}{
		"nobody":                       {},
		"one":                          {services: "a", owner: "a"},
		"the first of equal age":       {services: "a b", owner: "a", losers: "b"},
		"the older one":                {services: "a b/old", owner: "b", losers: "a"},
		"a cluster's before older":     {services: "a/old b/cluster", owner: "b", losers: "a"},
		"the own namespace before all": {services: "a/old,cluster b", own: "b", owner: "b", losers: "a"},
		"another namespace is not own": {services: "a b", own: "c", owner: "a", losers: "b"},
		"what is not seen":             {services: "a/old b", unseen: "a", owner: "b"},
		"no TCP at the port":           {services: "a/old,udp b", owner: "b"},
		"losers as they lost":          {services: "a b c/old", owner: "c", losers: "b a"},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*federation.Service
			for text := range strings.FieldsSeq(test.services) {
				all = append(all, declared(text))
			}
			owner, losers := service.FirstOwner(all, 80, test.own, func(s *federation.Service) bool { return s.Key.Namespace != test.unseen })
			got := ""
			if owner.Service != nil {
				got = owner.Service.Key.Namespace
			}
			var lost []string
			for _, s := range losers {
				lost = append(lost, s.Key.Namespace)
			}
			if got != test.owner || strings.Join(lost, " ") != test.losers {
				t.Errorf("the owner is %q and %q lose; want %q and %q", got, lost, test.owner, test.losers)
			}
		})
	}
}

func TestIsClusterLocal(t *testing.T) {
	settings := &federation.MeshSettings{
		ClusterLocalHosts:      []string{"*.private.svc.cluster.local"},
		ClusterLocalExceptions: []string{"open.private.svc.cluster.local", "kubernetes.default.svc.cluster.local"},
	}
	for _, test := range []struct {
		host     federation.Hostname
		settings *federation.MeshSettings
		want     bool
	}{
		{"web.shop.svc.cluster.local", nil, false},
		{"dns.kube-system.svc.cluster.local", nil, true},
		{"kubernetes.default.svc.cluster.local", nil, true},
		{"web.default.svc.cluster.local", nil, false},
		{"kube-system.example.com", nil, false},
		{"web.private.svc.cluster.local", settings, true},
		{"open.private.svc.cluster.local", settings, false},
		{"kubernetes.default.svc.cluster.local", settings, false},
		{"dns.kube-system.svc.cluster.local", settings, true},
	} {
		if got := service.IsClusterLocal(test.host, test.settings); got != test.want {
			t.Errorf("IsClusterLocal(%s), with settings: %t, is %t; want %t", test.host, test.settings != nil, got, test.want)
		}
	}
}
