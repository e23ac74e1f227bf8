package federation

import (
	"iter"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// Delta changes one kind of thing of one source: with Full it replaces
// everything that the source said before, otherwise it sets and removes.
type Delta[K comparable, V any] struct {
	Full bool
	Set  map[K]V
	Gone []K
	// Keep, with Full, tells what stays as the source said it before although Set lacks
	// it: what a source could not read is not gone. It is pure. Nil: nothing stays.
	Keep func(K) bool
}

func (d Delta[K, V]) empty() bool { return !d.Full && len(d.Set) == 0 && len(d.Gone) == 0 }

// removes reports whether a full delta takes away what was said before under the key.
func (d Delta[K, V]) removes(key K) bool {
	_, set := d.Set[key]
	return !set && (d.Keep == nil || !d.Keep(key))
}

// removed lists what the delta takes away of what was said before.
func (d Delta[K, V]) removed(before iter.Seq[K]) []K {
	if !d.Full {
		return d.Gone
	}
	gone := slices.Clone(d.Gone)
	for key := range before {
		if d.removes(key) {
			gone = append(gone, key)
		}
	}
	return gone
}

// completed is a full delta with what it keeps of that in Set.
func (d Delta[K, V]) completed(before map[K]V) Delta[K, V] {
	if !d.Full || d.Keep == nil {
		return d
	}
	set := maps.Clone(d.Set)
	for key, said := range before {
		if d.removes(key) {
			continue
		}
		if set == nil {
			set = map[K]V{}
		}
		if _, now := set[key]; !now {
			set[key] = said
		}
	}
	d.Set = set
	return d
}

// Edit is one change, applied as a whole. A registry's edit changes only its own
// shard only. The Edit and all it points to belong to the snapshot once it was
// handed to Next or a Writer.
type Edit struct {
	Source    ShardKey // filled in by the Writer
	Services  Delta[ServiceKey, *Shard]
	Workloads Delta[WorkloadKey, *Workload]
	Problems  Delta[string, Problem] // by any name that the registry finds again
	Identity  *ClusterIdentity
	Status    *RegistryStatus
	Clusters  Delta[ClusterID, ClusterSpec] // Gone removes all that the cluster ever said
	Settings  *Settings
	Objects   Delta[ObjectKey, *Object]
	Resolved  Delta[Hostname, []netip.Addr] // addresses of gateways that are given by name; see Snapshot.GatewayNames
	Verdicts  Delta[VerdictKey, Verdict]    // what probes found of gateways; see Gateway.Verdicts
	KeySets   Delta[KeySource, KeySet]      // keys that verify tokens, as they were fetched
	Clock     time.Time                     // to which the snapshot's time moves; one that is not later changes nothing
	Revision  int64                         // of the store of record that the edit brings the snapshot to; 0: as it was
}

// Completed is the edit with the services and workloads that it keeps in Set, taken
// from what the source said before: it no longer depends on whether that was published.
func (e Edit) Completed(before Edit) Edit {
	e.Services, e.Workloads = e.Services.completed(before.Services.Set), e.Workloads.completed(before.Workloads.Set)
	return e
}

// Timed is the edit with the time, if it has objects that mean something else as time passes.
func (e Edit) Timed(now time.Time) Edit {
	for key := range e.Objects.Set {
		if key.Of() == DrainKind && e.Clock.IsZero() {
			e.Clock = now
			break
		}
	}
	return e
}

// Settings are the hub's own settings that decide what a snapshot holds.
type Settings struct {
	Addresses AddressPolicy
}

func (s *Settings) equal(o *Settings) bool {
	return s.Addresses.AllowLoopback == o.Addresses.AllowLoopback && slices.Equal(s.Addresses.Own, o.Addresses.Own)
}
