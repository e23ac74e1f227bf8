package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/netip"
	"time"

	"isthmus.dev/isthmus/federation"
)

// content is all that is merged in a service, and nothing about when the hub
// learned of it.
type content struct {
	Key                       federation.ServiceKey
	Ports                     []federation.ServicePort
	ClusterVIPs               map[federation.ClusterID][]netip.Prefix
	Resolution                federation.Resolution
	MeshExternal              bool
	ExportTo, ServiceAccounts []string
	Created                   time.Time
	TrafficDistribution       string
	Endpoints                 []federation.ShardEndpoints
	Conflicts                 []federation.Conflict
	Aliases                   []federation.Hostname `json:",omitempty"`
	ExternalName              federation.Hostname   `json:",omitempty"`
}

// contentVersion hashes what a service is, so that every hub with the same
// content answers the same.
func contentVersion(s *federation.Service) string {
	text, err := json.Marshal(contentOf(s))
	if err != nil {
		panic("hashing a service: " + err.Error()) // Impossible: every part of content has a JSON form.
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

func contentOf(s *federation.Service) content {
	return content{
		s.Key, s.Ports, vipsByCluster(s), s.Resolution, s.MeshExternal, s.ExportTo, s.ServiceAccounts,
		s.Created.UTC(), s.TrafficDistribution, s.Endpoints, s.Conflicts,
		s.Aliases, s.ExternalName,
	}
}

func vipsByCluster(s *federation.Service) map[federation.ClusterID][]netip.Prefix {
	if len(s.ClusterVIPs) == 0 {
		return nil
	}
	return maps.Collect(s.ClusterVIPs.All())
}
