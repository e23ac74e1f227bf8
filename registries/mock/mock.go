// Package mock is a registry without a cluster behind it: two fixed services
// that never change, for samples and tests.
package mock

import (
	"context"
	"hash/fnv"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
)

// Sink gets what the registry reports.
type Sink interface {
	Update(federation.Edit)
	Status(federation.RegistryStatus)
}

// Registry offers hello and world of namespace default, with versions v0 and
// v1 each. VIPs and endpoints are in 10.N.0.0/16, where N is the number at the
// end of the cluster's ID (1 to 255), else a hash of the ID: several mocks have
// several VIPs for the same two services.
type Registry struct {
	cluster federation.ClusterID
	network federation.NetworkID
}

// New makes a registry for that cluster; an empty network is the default one.
func New(cluster federation.ClusterID, network federation.NetworkID) *Registry {
	return &Registry{cluster: cluster, network: network}
}

// Run says everything at once, then waits for the end of the context and
// returns nil.
func (r *Registry) Run(ctx context.Context, to Sink) error {
	to.Update(federation.Edit{
		Services:  federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true, Set: r.services()},
		Workloads: federation.Delta[federation.WorkloadKey, *federation.Workload]{Full: true, Set: r.workloads()},
		Problems:  federation.Delta[string, federation.Problem]{Full: true},
		Identity:  &federation.ClusterIdentity{UID: "mock-" + string(r.cluster)},
		Status:    &federation.RegistryStatus{Phase: federation.Ready},
	})
	<-ctx.Done()
	return nil
}

var names = [...]string{"hello", "world"}

const versions = 2

// ports are those that both services have.
func ports() []federation.Port {
	return []federation.Port{
		{Name: "http", Number: 80, Protocol: federation.HTTP},
		{Name: "http-status", Number: 81, Protocol: federation.HTTP},
		{Name: "custom", Number: 90, Protocol: federation.TCP},
		{Name: "mongo", Number: 100, Protocol: federation.Mongo},
		{Name: "redis", Number: 110, Protocol: federation.Redis},
		{Name: "mysql", Number: 120, Protocol: federation.MySQL},
	}
}

// listening is where the workloads serve the ports: 1000 above.
func listening() []federation.EndpointPort {
	var all []federation.EndpointPort
	for _, p := range ports() {
		all = append(all, federation.EndpointPort{Name: p.Name, Number: p.Number + 1000})
	}
	return all
}

func (r *Registry) services() map[federation.ServiceKey]*federation.Shard {
	all := map[federation.ServiceKey]*federation.Shard{}
	for s, name := range names {
		key := federation.ServiceKey{Hostname: federation.Hostname(name + ".default.svc.cluster.local"), Namespace: "default"}
		shard := &federation.Shard{
			Ports:      ports(),
			VIPs:       []netip.Prefix{netip.PrefixFrom(r.address(0, s+1), 32)},
			Resolution: federation.ClientSideLB,
			Created:    time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
			Labels:     map[string]string{"app": name},
		}
		for v := range versions {
			shard.Endpoints = append(shard.Endpoints, r.endpoint(s, v))
		}
		all[key] = shard
	}
	return all
}

func (r *Registry) endpoint(service, version int) federation.Endpoint {
	return federation.Endpoint{
		Address:        federation.IPAddress(r.address(service+1, version+1)),
		Ports:          listening(),
		Network:        r.network,
		Locality:       r.locality(version),
		Health:         federation.Healthy,
		Labels:         labels(service, version),
		ServiceAccount: "spiffe://cluster.local/ns/default/sa/" + names[service],
		Workload:       "default/" + workloadName(service, version),
	}
}

func (r *Registry) workloads() map[federation.WorkloadKey]*federation.Workload {
	all := map[federation.WorkloadKey]*federation.Workload{}
	for s := range names {
		for v := range versions {
			all[federation.WorkloadKey{Namespace: "default", Name: workloadName(s, v)}] = &federation.Workload{
				Addresses:      []netip.Addr{r.address(s+1, v+1)},
				Network:        r.network,
				Locality:       r.locality(v),
				Labels:         labels(s, v),
				ServiceAccount: names[s],
				Probes:         []federation.Probe{{Kind: "readiness", Container: names[s], Protocol: "HTTP", Port: 3333, Path: "/ready"}},
				ManagementPorts: []federation.Port{
					{Name: "http", Number: 3333, Protocol: federation.HTTP},
					{Name: "custom", Number: 9999, Protocol: federation.TCP},
				},
			}
		}
	}
	return all
}

func labels(service, version int) map[string]string {
	return map[string]string{"app": names[service], "version": "v" + strconv.Itoa(version)}
}

func workloadName(service, version int) string {
	return names[service] + "-v" + strconv.Itoa(version)
}

func (r *Registry) locality(version int) federation.Locality {
	region := "region-" + strconv.Itoa(int(r.number()))
	return federation.Locality{Region: region, Zone: region + string(rune('a'+version))}
}

func (r *Registry) address(third, fourth int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, r.number(), byte(third), byte(fourth)})
}

func (r *Registry) number() byte {
	id := string(r.cluster)
	digits := id[len(strings.TrimRight(id, "0123456789")):]
	if n, err := strconv.ParseUint(digits, 10, 8); err == nil && n > 0 {
		return byte(n)
	}
	h := fnv.New32a()
	h.Write([]byte(id))
	return byte(1 + h.Sum32()%255)
}
