package federation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func consulShard(cluster string) ShardKey {
	return ShardKey{Cluster: ClusterID(cluster), Provider: Consul}
}

func serves(addresses ...string) *Shard {
	s := web("")
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, endpoint(a, 8080))
	}
	return s
}

func named(shard *Shard, aliases ...Hostname) *Shard {
	shard.Aliases = aliases
	return shard
}

// leadsTo are the addresses of the service, or its other names with those of the
// service that has the name.
func leadsTo(s *Snapshot, host string) string {
	svc, ok := s.Service(key(host, ""))
	if !ok {
		for other := range s.Services().All() {
			if slices.Contains(other.Aliases, Hostname(host)) {
				return "as " + string(other.Key.Hostname)
			}
		}
		return "nothing"
	}
	var addresses []string
	for _, group := range svc.Endpoints {
		for _, e := range group.Endpoints {
			addresses = append(addresses, fmt.Sprintf("%s@%s", e.Address, group.Shard.Cluster))
		}
	}
	return strings.Join(addresses, " ")
}

// TestR84NamesThatSomeClustersGive: a name leads to the instances of the clusters that
// give it, and to no others: clusters of one datacenter name share the name.
func TestR84NamesThatSomeClustersGive(t *testing.T) {
	const host, one, two = "web.service.consul", "web.service.dc1.consul", "web.service.dc2.consul"
	const live, liveTwo = "live.web.service.consul", "live.web.service.dc2.consul"
	say := func(cluster, name string, shard *Shard) Edit {
		e := Edit{Source: consulShard(cluster)}
		e.Services.Set = map[ServiceKey]*Shard{key(name, ""): shard}
		return e
	}
	leave := func(cluster, name string) Edit {
		return Edit{Source: consulShard(cluster), Services: Delta[ServiceKey, *Shard]{Gone: []ServiceKey{key(name, "")}}}
	}
	s := Empty()
	for _, step := range []struct {
		what string
		edit Edit
		want map[string]string
	}{
		{
			"one datacenter", say("a", host, named(serves("10.0.0.1"), one, live)),
			map[string]string{one: "as " + host, live: "as " + host, two: "nothing"},
		},
		{
			"another cluster of that datacenter's name", say("b", host, named(serves("10.0.0.2"), one)),
			map[string]string{one: "as " + host, live: "10.0.0.1@a"},
		},
		{"a second datacenter", say("c", host, named(serves("10.0.0.3"), two)), map[string]string{
			host: "10.0.0.1@a 10.0.0.2@b 10.0.0.3@c", one: "10.0.0.1@a 10.0.0.2@b", two: "10.0.0.3@c", live: "10.0.0.1@a",
		}},
		{
			"an instance more", say("a", host, named(serves("10.0.0.1", "10.0.0.9"), one, live)),
			map[string]string{one: "10.0.0.1@a 10.0.0.9@a 10.0.0.2@b", live: "10.0.0.1@a 10.0.0.9@a"},
		},
		{"a tag of some instances elsewhere", say("c", live, named(serves("10.0.0.3"), liveTwo)), map[string]string{
			live: "10.0.0.1@a 10.0.0.9@a 10.0.0.3@c", liveTwo: "10.0.0.3@c",
		}},
		{"which it loses", leave("c", live), map[string]string{live: "10.0.0.1@a 10.0.0.9@a", liveTwo: "nothing"}},
		{"a cluster's own service of the name comes first", say("a", live, serves("10.0.0.7")), map[string]string{live: "10.0.0.7@a"}},
		{"until it does not", leave("a", live), map[string]string{live: "10.0.0.1@a 10.0.0.9@a"}},
		{"the first datacenter is the last one", leave("c", host), map[string]string{one: "as " + host, two: "nothing"}},
		{"a cluster leaves", leave("b", host), map[string]string{one: "as " + host, live: "as " + host}},
		{"and all", leave("a", host), map[string]string{one: "nothing", live: "nothing", host: "nothing"}},
	} {
		s, _ = Next(s, step.edit)
		for name, want := range step.want {
			if got := leadsTo(s, name); got != want {
				t.Errorf("%s: %s leads to %s, want %s", step.what, name, got, want)
			}
		}
		for _, cluster := range []ClusterID{"a", "b", "c"} {
			for k, shard := range s.Contribution(consulShard(string(cluster))).Services.Set {
				if shard.NameOf != "" {
					t.Errorf("%s: cluster %s is reported to have said %s", step.what, cluster, k)
				}
			}
		}
	}
	if n := s.services.names.Len() + s.services.members.Len() + s.services.byKey.Len(); n != 0 {
		t.Errorf("%d entries are left of nothing", n)
	}
}
