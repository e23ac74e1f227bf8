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

// IsNode says that a service has an ID.
func (Service) IsNode() {}

// GetID makes the opaque ID.
func (s Service) GetID() string { return s.ID() }

// ID makes the opaque ID.
func (s Service) ID() string { return ID(KindService, s.Key()) }

// Key orders services by hostname, then namespace.
func (s Service) Key() string { return string(s.Of.Key.Hostname) + "\x00" + s.Of.Key.Namespace }

// ServiceKey is the inverse of Service.Key.
func ServiceKey(key string) federation.ServiceKey {
	hostname, namespace, _ := strings.Cut(key, "\x00")
	return federation.ServiceKey{Hostname: federation.Hostname(hostname), Namespace: namespace}
}

func (s Service) Hostname() string       { return string(s.Of.Key.Hostname) }
func (s Service) Namespace() string      { return s.Of.Key.Namespace }
func (s Service) Resolution() Resolution { return Resolution(s.Of.Resolution.String()) }
func (s Service) MeshExternal() bool     { return s.Of.MeshExternal }
func (s Service) Version() string        { return contentVersion(s.Of) }
func (s Service) ExportTo() []string     { return s.Of.ExportTo }
func (s Service) ServiceAccounts() []string {
	return s.Of.ServiceAccounts
}
func (s Service) Created() *time.Time { return known(s.Of.Created) }

// ClusterVIPs returns the virtual addresses in the order of the clusters.
func (s Service) ClusterVIPs() []ClusterVIPs {
	var all []ClusterVIPs
	for _, id := range slices.Sorted(maps.Keys(s.Of.ClusterVIPs)) {
		found := ClusterVIPs{ClusterID: string(id)}
		for _, prefix := range s.Of.ClusterVIPs[id] {
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
		all = append(all, Conflict{Kind: string(conflict.Kind), Message: conflict.Message, ClusterIDs: texts(conflict.Clusters)})
	}
	return all
}

// Shards returns what each source contributes, in the order of precedence.
func (s Service) Shards() []Shard {
	var all []Shard
	for _, key := range s.Of.Order() {
		shard := s.Of.Shards[key]
		if shard == nil {
			continue
		}
		found := Shard{
			ClusterID: string(key.Cluster), Provider: provider(key.Provider), Resolution: Resolution(shard.Resolution.String()),
			MeshExternal: shard.MeshExternal, Created: known(shard.Created), Labels: labels(shard.Labels), EndpointCount: len(shard.Endpoints),
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
	for rank, group := range s.Of.Endpoints {
		for i := range group.Endpoints {
			if !yield(Endpoint{Source: group.Shard, Of: &group.Endpoints[i], service: s.Key(), rank: rank, index: i}) {
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
