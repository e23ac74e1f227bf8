package model

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
)

// Service is a service as one snapshot has it.
type Service struct {
	From *federation.Snapshot
	Of   *federation.Service
}

// IsNode marks a service as a Node of the schema.
func (Service) IsNode() {}

// ID makes the opaque ID.
func (s Service) ID() string { return ID(KindService, s.Key()) }

// Key orders services by hostname, then namespace.
func (s Service) Key() string { return KeyOfService(s.Of.Key) }

// KeyOfService is the Key of the service of that key.
func KeyOfService(key federation.ServiceKey) string {
	return string(key.Hostname) + nul + key.Namespace
}

// ServiceKey reads what Service.Key writes; what else follows it is excluded.
func ServiceKey(key string) federation.ServiceKey {
	hostname, rest, _ := strings.Cut(key, nul)
	namespace, _, _ := strings.Cut(rest, nul)
	return federation.ServiceKey{Hostname: federation.Hostname(hostname), Namespace: namespace}
}

// Hostname is the fully qualified name.
func (s Service) Hostname() string { return string(s.Of.Key.Hostname) }

// Namespace is "" where it has none.
func (s Service) Namespace() string { return s.Of.Key.Namespace }

// Aliases are other hostnames of the service.
func (s Service) Aliases() []string {
	names := []string{}
	for _, name := range s.From.Aliases(s.Of) {
		names = append(names, string(name))
	}
	return names
}

// Resolution says how a proxy finds an address.
func (s Service) Resolution() Resolution { return Resolution(s.Of.Resolution.String()) }

// MeshExternal reports whether the service lies outside of the mesh.
func (s Service) MeshExternal() bool { return s.Of.MeshExternal }

// ContentHash changes with the content.
func (s Service) ContentHash() string { return contentVersion(s.Of) }

// ExportTo has the namespaces that see the service; none: all.
func (s Service) ExportTo() []string { return s.Of.ExportTo }

// ServiceAccounts has those under which its workloads run.
func (s Service) ServiceAccounts() []string { return s.Of.ServiceAccounts }

// CreatedAt is nil where it is unknown.
func (s Service) CreatedAt() *time.Time { return known(s.Of.Created) }

// ClusterVIPs returns the virtual addresses in the order of the clusters.
func (s Service) ClusterVIPs() []ClusterVIPs {
	var all []ClusterVIPs
	for id, prefixes := range s.Of.ClusterVIPs.All() {
		found := ClusterVIPs{ClusterID: string(id)}
		for _, prefix := range prefixes {
			found.Addresses = append(found.Addresses, prefixText(prefix))
		}
		all = append(all, found)
	}
	return all
}

func prefixText(prefix netip.Prefix) string {
	if prefix.IsSingleIP() {
		return prefix.Addr().String()
	}
	return prefix.String()
}

// Ports returns the merged ports with the clusters that have them.
func (s Service) Ports() []ServicePort {
	var all []ServicePort
	for _, port := range s.Of.Ports {
		found := ServicePort{Name: port.Name, Number: int(port.Number), Protocol: protocol(port.Protocol)}
		for _, declared := range port.Declared {
			id := string(declared.Shard.Cluster)
			if !slices.Contains(found.ClusterIDs, id) {
				found.ClusterIDs = append(found.ClusterIDs, id)
				found.Names = append(found.Names, ClusterPortName{ClusterID: id, Name: declared.Name})
			}
		}
		all = append(all, found)
	}
	return all
}

func protocol(p federation.Protocol) Protocol {
	switch p {
	case federation.GRPCWeb:
		return ProtocolGrpcWeb
	case federation.Unsupported:
		return ProtocolUnsupported
	default:
		return Protocol(strings.ToUpper(string(p)))
	}
}

// Conflicts returns what the clusters disagree about.
func (s Service) Conflicts() []Conflict {
	var all []Conflict
	for _, conflict := range s.Of.Conflicts {
		all = append(all, Conflict{
			Kind: string(conflict.Kind), DocURL: findingDoc(string(conflict.Kind)), Message: conflict.Message, ClusterIDs: texts(conflict.Clusters),
		})
	}
	return all
}

// Shards returns what each source contributes, in the order of precedence.
func (s Service) Shards() []Shard {
	var all []Shard
	for _, key := range s.Of.Order() {
		shard := s.Of.Shards.Of(key)
		if shard == nil {
			continue
		}
		found := Shard{
			ClusterID: string(key.Cluster), Provider: provider(key.Provider), Resolution: Resolution(shard.Resolution.String()),
			MeshExternal: shard.MeshExternal, CreatedAt: known(shard.Created), Labels: labels(shard.Labels), EndpointCount: len(shard.Endpoints),
		}
		if shard.UID != "" {
			found.UID = &shard.UID
		}
		all = append(all, found)
	}
	return all
}

// Endpoints yields the endpoints with their sources in the order of their keys.
func (s Service) Endpoints(yield func(Endpoint) bool) {
	groups := slices.SortedFunc(slices.Values(s.Of.Endpoints), func(a, b federation.ShardEndpoints) int { return a.Shard.Compare(b.Shard) })
	for _, group := range groups {
		for i := range group.Endpoints {
			if !yield(Endpoint{Source: group.Shard, Of: &group.Endpoints[i], service: s.Of.Key}) {
				return
			}
		}
	}
}

func texts[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, one := range all {
		out[i] = string(one)
	}
	return out
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func labels(all map[string]string) []Label {
	out := make([]Label, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, Label{Key: key, Value: all[key]})
	}
	return out
}

func provider(p federation.Provider) Provider { return Provider(strings.ToUpper(string(p))) }
