package federation

import (
	"maps"
	"slices"
	"strings"
)

// The workloads of a namespace are indexed by those labels for which selectors of
// the namespace have a value. Where nothing selects workloads the index takes no memory.

func labelPrefix(namespace, label string) string { return namespace + nul + label + nul }

func labelKey(namespace, label, value string, shard ShardKey, name string) string {
	return labelPrefix(namespace, label) + value + nul + string(shard.Provider) + nul + string(shard.Cluster) + nul + name
}

// shardOfNamespaceKey reads a provider and a cluster, in this order.
func shardOfNamespaceKey(k string) ShardKey {
	provider, cluster, _ := strings.Cut(k, nul)
	return ShardKey{Cluster: ClusterID(cluster), Provider: Provider(provider)}
}

// countSelecting counts the selectors that have a value for a label. The workloads are
// indexed by the label with its first selector, and no more after its last.
func (x *workloadsTxn) countSelecting(namespace string, s *Selector, change int) {
	if !s.active() {
		return
	}
	for label := range s.Labels {
		at := labelPrefix(namespace, label)
		before, _ := x.selectedBy.Get(at)
		if before+change == 0 {
			x.selectedBy.Delete(at)
			x.dropLabel(at)
			continue
		}
		x.selectedBy.Set(at, before+change)
		if before == 0 {
			x.addLabel(namespace, label)
		}
	}
}

func (x *workloadsTxn) addLabel(namespace, label string) {
	for _, shard := range x.shardsIn(namespace, "") {
		x.WalkPrefix(shard.prefix()+namespace+nul, func(k string, w *Workload) bool {
			x.visited++
			if value, has := w.Labels[label]; has {
				x.labels.Set(labelKey(namespace, label, value, shard, workloadKeyOf(k, shard).Name), struct{}{})
			}
			return false
		})
	}
}

func (x *workloadsTxn) dropLabel(prefix string) {
	var gone []string
	x.labels.WalkPrefix(prefix, func(k string, _ struct{}) bool { gone = append(gone, k); return false })
	for _, k := range gone {
		x.labels.Delete(k)
	}
}

// indexLabels keeps the index when a workload changes; nil: it is not there.
func (x *workloadsTxn) indexLabels(source ShardKey, key WorkloadKey, old, now *Workload) {
	if x.selectedBy.Len() == 0 {
		return
	}
	each := func(w *Workload, do func(k string)) {
		if w == nil {
			return
		}
		for label, value := range w.Labels {
			if _, selects := x.selectedBy.Get(labelPrefix(key.Namespace, label)); selects {
				do(labelKey(key.Namespace, label, value, source, key.Name))
			}
		}
	}
	each(old, func(k string) { x.labels.Delete(k) })
	each(now, func(k string) { x.labels.Set(k, struct{}{}) })
}

// candidates are the workloads that have the rarest of the selector's labels, of the
// provider or, when it is "", of all; in the order of provider, cluster and name.
// Which is the rarest shows when one of the lists ends.
func (x *workloadsTxn) candidates(namespace string, p Provider, s *Selector) []selection {
	const first = 8 // of each list
	labels := slices.Sorted(maps.Keys(s.Labels))
	for limit := first; ; limit *= 2 {
		for _, label := range labels {
			prefix := labelPrefix(namespace, label) + s.Labels[label] + nul
			if keys, whole := x.labelled(prefix, p, limit); whole {
				return readCandidates(namespace, prefix, keys)
			}
		}
	}
}

// labelled lists keys of the index up to the limit, and reports whether these are all.
func (x *workloadsTxn) labelled(prefix string, p Provider, limit int) (keys []string, whole bool) {
	if p != "" {
		prefix += string(p) + nul
	}
	whole = true
	x.labels.WalkPrefix(prefix, func(k string, _ struct{}) bool {
		x.visited++
		whole = len(keys) < limit
		if whole {
			keys = append(keys, k)
		}
		return !whole
	})
	return keys, whole
}

func readCandidates(namespace, prefix string, keys []string) []selection {
	all := make([]selection, 0, len(keys))
	for _, k := range keys {
		if at := strings.LastIndex(k, nul); at >= len(prefix) {
			all = append(all, selection{
				shard:    shardOfNamespaceKey(k[len(prefix):at]),
				workload: WorkloadKey{Namespace: namespace, Name: k[at+len(nul):]},
			})
		}
	}
	return all
}
