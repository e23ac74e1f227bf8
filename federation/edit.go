package federation

import (
	"net/netip"
	"slices"
)

// Delta changes one sort of thing of one source: with Full it replaces
// everything that the source said before, otherwise it sets and removes.
type Delta[K comparable, V any] struct {
	Full bool
	Set  map[K]V
	Gone []K
}

func (d Delta[K, V]) empty() bool { return !d.Full && len(d.Set) == 0 && len(d.Gone) == 0 }

// Edit is one change, applied as a whole. A registry's edit speaks of its own
// shard only. The Edit and all it points to belong to the snapshot once it was
// handed to Next or a Writer.
type Edit struct {
	Source    ShardKey // filled in by the Writer
	Services  Delta[ServiceKey, *Shard]
	Workloads Delta[WorkloadKey, *Workload]
	Problems  Delta[string, Problem] // by any name that the registry finds again
	Identity  *Identity
	Status    *RegistryStatus
	Clusters  Delta[ClusterID, ClusterSpec] // Gone removes all that the cluster ever said
	Settings  *Settings
	Objects   Delta[ObjectKey, *Object]
	Resolved  Delta[Hostname, []netip.Addr] // what names of gateways stand for; see Snapshot.GatewayNames
	Verdicts  Delta[VerdictKey, Verdict]    // what probes found of gateways; see Gateway.Verdicts
	Revision  int64                         // of the store of record that the edit brings the snapshot to; 0: as it was
}

// Settings are the hub's own settings that decide what a snapshot holds.
type Settings struct {
	Addresses AddressPolicy
}

func (s *Settings) equal(o *Settings) bool {
	return s.Addresses.AllowLoopback == o.Addresses.AllowLoopback && slices.Equal(s.Addresses.Own, o.Addresses.Own)
}
