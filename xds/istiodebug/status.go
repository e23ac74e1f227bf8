package istiodebug

import (
	"maps"
	"slices"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"isthmus.dev/isthmus/federation/fleet"
)

// Statuses are the proxies for which keep holds, with what each accepted of the types that
// it asked for.
func (d *Debug) Statuses(keep func(*fleet.Proxy) bool) ([]*statusv3.ClientConfig, error) {
	var all []*statusv3.ClientConfig
	bytes := 0
	for p := range d.o.Fleet.Latest().Proxies() {
		if !keep(p) {
			continue
		}
		one := statusOf(p)
		bytes += proto.Size(one)
		if bytes > maxBytes {
			return nil, TooLargeError{"the status of all proxies"}
		}
		all = append(all, one)
	}
	return all, nil
}

// Everyone keeps all proxies.
func Everyone(*fleet.Proxy) bool { return true }

func statusOf(p *fleet.Proxy) *statusv3.ClientConfig {
	text := structpb.NewStringValue
	said := map[string]*structpb.Value{"CLUSTER_ID": text(string(p.Cluster)), "NAMESPACE": text(p.Namespace)}
	if p.MeshVersion != "" {
		said["ISTIO_VERSION"] = text(p.MeshVersion)
	}
	one := &statusv3.ClientConfig{
		Node:        &corev3.Node{Id: p.NodeID, Metadata: &structpb.Struct{Fields: said}},
		ClientScope: p.StreamID,
	}
	for _, typeURL := range slices.Sorted(maps.Keys(p.Sync)) {
		if sync := p.Sync[typeURL]; sync.State != fleet.NotRequested {
			one.GenericXdsConfigs = append(one.GenericXdsConfigs, configOf(typeURL, sync))
		}
	}
	return one
}

func configOf(typeURL string, sync fleet.Sync) *statusv3.ClientConfig_GenericXdsConfig {
	c := &statusv3.ClientConfig_GenericXdsConfig{
		TypeUrl: typeURL, VersionInfo: sync.VersionAcked, ConfigStatus: stateOf(sync), LastUpdated: timestamppb.New(sync.Since),
	}
	if sync.State == fleet.Nacked {
		c.ErrorState = &adminv3.UpdateFailureState{Details: sync.LastError, VersionInfo: sync.VersionSent, LastUpdateAttempt: c.GetLastUpdated()}
	}
	return c
}

// stateOf is the state of a type in Istio's terms.
func stateOf(sync fleet.Sync) statusv3.ConfigStatus {
	switch {
	case sync.State == fleet.Nacked:
		return statusv3.ConfigStatus_ERROR
	case sync.VersionSent == "":
		return statusv3.ConfigStatus_NOT_SENT
	case sync.State == fleet.Synced:
		return statusv3.ConfigStatus_SYNCED
	}
	return statusv3.ConfigStatus_STALE
}
