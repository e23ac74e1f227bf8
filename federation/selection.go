package federation

import (
	"cmp"
	"slices"
)

// selection is a workload that a selector found, as an endpoint.
type selection struct {
	shard    ShardKey // that of the workload
	workload WorkloadKey
	endpoint Endpoint
}

// selects reports whether the workload carries all labels of the selector.
func (s *Selector) selects(w *Workload) bool {
	return w != nil && s.active() && MatchesLabels(w.Labels, []map[string]string{s.Labels})
}

// active is false for selectors without labels: they select nothing.
func (s *Selector) active() bool { return s != nil && len(s.Labels) > 0 }

// providers are those whose workloads are looked at; "" means all.
func (s *Selector) providers() []Provider {
	switch {
	case !s.active():
		return nil
	case len(s.Providers) == 0:
		return []Provider{""}
	}
	return s.Providers
}

func selectorPrefix(namespace string, p Provider) string {
	return namespace + nul + string(p) + nul
}

func (x *workloadsTxn) indexSelector(source ShardKey, key ServiceKey, old, now *Shard) {
	if old != nil && now != nil && old.Selector.Equal(now.Selector) {
		return
	}
	at := func(p Provider) string {
		return selectorPrefix(key.Namespace, p) + key.sortKey() + nul + source.prefix()
	}
	// The new one first: labels that both have stay indexed.
	if now != nil {
		for _, p := range now.Selector.providers() {
			x.selectors.Set(at(p), key)
		}
		x.countSelecting(key.Namespace, now.Selector, 1)
	}
	if old != nil {
		for _, p := range old.Selector.providers() {
			if now == nil || !slices.Contains(now.Selector.providers(), p) {
				x.selectors.Delete(at(p))
			}
		}
		x.countSelecting(key.Namespace, old.Selector, -1)
	}
}

// countInNamespace keeps the index of the shards that have workloads in a namespace.
func (x *workloadsTxn) countInNamespace(source ShardKey, namespace string, change int) {
	at := selectorPrefix(namespace, source.Provider) + string(source.Cluster)
	n, _ := x.namespaces.Get(at)
	n += change
	if n == 0 {
		x.namespaces.Delete(at)
		return
	}
	x.namespaces.Set(at, n)
}

// shardsIn yields the shards that have workloads in the namespace; provider ""
// means all.
func (x *workloadsTxn) shardsIn(namespace string, provider Provider) []ShardKey {
	prefix := selectorPrefix(namespace, provider)
	if provider == "" {
		prefix = namespace + nul
	}
	var found []ShardKey
	x.namespaces.WalkPrefix(prefix, func(k string, _ int) bool {
		found = append(found, shardOfNamespaceKey(k[len(namespace)+len(nul):]))
		return false
	})
	return found
}

// selected finds the workloads that a shard's selector selects, in an order that
// depends on nothing but them.
func (x *workloadsTxn) selected(source ShardKey, namespace string, shard *Shard) []selection {
	var found []selection
	for _, p := range shard.Selector.providers() {
		for _, c := range x.candidates(namespace, p, shard.Selector) {
			w, _ := x.Get(workloadSortKey(c.shard, c.workload))
			if !shard.Selector.selects(w) {
				continue
			}
			if e, ok := w.endpoint(shard); ok {
				e.Workload = c.workload.String()
				if c.shard.Cluster != source.Cluster {
					e.Cluster = c.shard.Cluster
				}
				c.endpoint = e
				found = append(found, c)
			}
		}
	}
	return found
}

// endpoint is the workload as an endpoint of a shard that selects it; false if it
// has no address or serves none of the ports.
func (w *Workload) endpoint(shard *Shard) (Endpoint, bool) {
	address := w.Host
	if address == (Address{}) {
		if len(w.Addresses) == 0 {
			return Endpoint{}, false
		}
		address = IPAddress(w.Addresses[0])
	}
	e := Endpoint{
		Address: address, Network: cmp.Or(w.Network, DefaultNetwork), Locality: w.Locality, Labels: w.Labels, Weight: w.Weight,
		TLSMode: w.TLSMode, Health: cmp.Or(w.Health, Healthy), ServiceAccount: w.ServiceAccount,
	}
	for _, p := range shard.Ports {
		if number, ok := w.listens(p, shard.Selector); ok {
			e.Ports = append(e.Ports, EndpointPort{Name: p.Name, Number: number})
		}
	}
	_, unix := address.Unix()
	return e, unix || len(e.Ports) > 0 || len(shard.Ports) == 0
}

// listens says where the workload serves a service port: where it says so itself,
// else where the selector expects it, else at the port's own number.
func (w *Workload) listens(p Port, s *Selector) (uint16, bool) {
	own := Endpoint{Ports: w.Ports}
	if number, ok := own.Port(p.Name); ok {
		return number, true
	}
	if name, named := s.TargetNames[p.Name]; named {
		return own.Port(name)
	}
	if number, ok := s.TargetPorts[p.Name]; ok {
		return number, true
	}
	return p.Number, true
}
