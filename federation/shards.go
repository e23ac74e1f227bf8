package federation

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
)

// ShardSet is what registries say of one service, sorted by shard. It is never
// changed. Most services have one or two shards, for which a map is large.
type ShardSet []keyedShard

type keyedShard struct {
	Key   ShardKey
	Shard *Shard
}

// Of returns what the shard says; nil: nothing.
func (s ShardSet) Of(key ShardKey) *Shard {
	if i, found := s.find(key); found {
		return s[i].Shard
	}
	return nil
}

// All yields every shard.
func (s ShardSet) All() iter.Seq2[ShardKey, *Shard] {
	return func(yield func(ShardKey, *Shard) bool) {
		for _, k := range s {
			if !yield(k.Key, k.Shard) {
				return
			}
		}
	}
}

func (s ShardSet) find(key ShardKey) (int, bool) {
	return slices.BinarySearchFunc(s, key, func(k keyedShard, key ShardKey) int { return k.Key.Compare(key) })
}

// with is the set with another shard in that place; nil removes it.
func (s ShardSet) with(key ShardKey, shard *Shard) ShardSet {
	i, found := s.find(key)
	out := make(ShardSet, 0, len(s)+1)
	out = append(out, s[:i]...)
	if shard != nil {
		out = append(out, keyedShard{key, shard})
	}
	if found {
		i++
	}
	return append(out, s[i:]...)
}

// equal reports whether both have the same shards, and that each pair is the same in
// the given sense.
func (s ShardSet) equal(o ShardSet, same func(a, b *Shard) bool) bool {
	return slices.EqualFunc(s, o, func(a, b keyedShard) bool {
		return a.Key == b.Key && (a.Shard == b.Shard || a.Shard != nil && b.Shard != nil && same(a.Shard, b.Shard))
	})
}

// VIPSet is the virtual addresses of a service in each cluster, sorted by cluster.
// It is never changed.
type VIPSet []clusterVIPs

type clusterVIPs struct {
	Cluster ClusterID
	VIPs    []netip.Prefix
}

// Of returns the addresses in the cluster.
func (s VIPSet) Of(id ClusterID) []netip.Prefix {
	if i, found := s.find(id); found {
		return s[i].VIPs
	}
	return nil
}

// All yields the addresses of every cluster that has any.
func (s VIPSet) All() iter.Seq2[ClusterID, []netip.Prefix] {
	return func(yield func(ClusterID, []netip.Prefix) bool) {
		for _, c := range s {
			if !yield(c.Cluster, c.VIPs) {
				return
			}
		}
	}
}

func (s VIPSet) find(id ClusterID) (int, bool) {
	return slices.BinarySearchFunc(s, id, func(c clusterVIPs, id ClusterID) int { return cmp.Compare(c.Cluster, id) })
}

// with is the set with other addresses in the cluster.
func (s VIPSet) with(id ClusterID, vips []netip.Prefix) VIPSet {
	i, found := s.find(id)
	if found {
		out := slices.Clone(s)
		out[i].VIPs = vips
		return out
	}
	return slices.Insert(slices.Clone(s), i, clusterVIPs{id, vips})
}

func (s VIPSet) equal(o VIPSet) bool {
	return slices.EqualFunc(s, o, func(a, b clusterVIPs) bool { return a.Cluster == b.Cluster && slices.Equal(a.VIPs, b.VIPs) })
}
