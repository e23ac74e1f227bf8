package federation

import (
	"cmp"
	"maps"
)

// The labels of topology: where endpoints and proxies are says their values.
const (
	LabelNetwork = "topology.istio.io/network"
	LabelCluster = "topology.istio.io/cluster"
	LabelRegion  = "topology.kubernetes.io/region"
	LabelZone    = "topology.kubernetes.io/zone"
	LabelSubZone = "topology.istio.io/subzone"
)

// IsTopology reports whether the key is that of a label of topology.
func IsTopology(key string) bool {
	_, ofLocality := Locality{}.Label(key)
	return ofLocality || key == LabelNetwork || key == LabelCluster
}

// Label is the value of a label that is part of a locality.
func (l Locality) Label(key string) (value string, is bool) {
	switch key {
	case LabelRegion:
		return l.Region, true
	case LabelZone:
		return l.Zone, true
	case LabelSubZone:
		return l.SubZone, true
	}
	return "", false
}

// Topology is where an endpoint or a proxy is. Empty fields are unknown.
type Topology struct {
	Cluster  ClusterID
	Network  NetworkID
	Locality Locality
}

// Label is the value of a label, as subsets and selectors see it: that of topology where the
// topology is known, else that among the own labels.
func (t Topology) Label(own map[string]string, key string) (string, bool) {
	value, _ := t.Locality.Label(key)
	switch key {
	case LabelNetwork:
		value = string(t.Network)
	case LabelCluster:
		value = string(t.Cluster)
	}
	if value != "" {
		return value, true
	}
	value, has := own[key]
	return value, has
}

// Labels are the own labels and those of topology of the given keys: the same map if none of the
// keys is of topology.
func (t Topology) Labels(own map[string]string, keys []string) map[string]string {
	all, copied := own, false
	for _, key := range keys {
		value, has := t.Label(own, key)
		if !has || !IsTopology(key) {
			continue
		}
		if !copied {
			all, copied = maps.Clone(own), true
			if all == nil {
				all = map[string]string{}
			}
		}
		all[key] = value
	}
	return all
}

// TopologyOf is where one of the endpoints is.
func (e ShardEndpoints) TopologyOf(of *Endpoint) Topology {
	return Topology{Cluster: e.ClusterOf(of), Network: cmp.Or(of.Network, DefaultNetwork), Locality: of.Locality}
}

// HasLabels reports whether one of the endpoints has the labels, those of topology included.
func (e ShardEndpoints) HasLabels(of *Endpoint, wanted map[string]string) bool {
	for key, value := range wanted {
		if have, has := e.TopologyOf(of).Label(of.Labels, key); !has || have != value {
			return false
		}
	}
	return true
}
