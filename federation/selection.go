package federation

import (
	"cmp"
	"strings"
)

// selection is a workload that a selector found, as an endpoint.
type selection struct {
	shard    ShardKey // that of the workload
	workload WorkloadKey
	endpoint Endpoint
}

// selects tells whether the workload carries all labels of the selector.
func (s *Selector) selects(w *Workload) bool {
	return w != nil && s.active() && MatchesLabels(w.Labels, []map[string]string{s.Labels})
}

// active is false for selectors without labels: they select nothing.
func (s *Selector) active() bool { return s != nil && len(s.Labels) > 0 }

// providers are those whose workloads are looked at; "" stands for all.
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

func (d *draft) indexSelector(source ShardKey, key ServiceKey, old, now *Shard) {
	if old != nil && now != nil && old.Selector.Equal(now.Selector) {
		return
	}
	at := func(p Provider) string {
		return selectorPrefix(key.Namespace, p) + key.sortKey() + nul + source.prefix()
	}
	if old != nil {
		for _, p := range old.Selector.providers() {
			d.selectors.Delete(at(p))
		}
	}
	if now != nil {
		for _, p := range now.Selector.providers() {
			d.selectors.Set(at(p), key)
		}
	}
}

// reselect marks the services that select the workload, before or now.
func (d *draft) reselect(provider Provider, namespace string, old, now *Workload) {
	for _, p := range []Provider{provider, ""} {
		d.selectors.WalkPrefix(selectorPrefix(namespace, p), func(_ string, key ServiceKey) bool {
			if d.dirty[key] {
				return false
			}
			for _, shard := range d.shards(key).All() {
				if shard.Selector.selects(old) || shard.Selector.selects(now) {
					d.dirty[key] = true
				}
			}
			return false
		})
	}
}

// countHome keeps the index of the shards that have workloads in a namespace.
func (d *draft) countHome(source ShardKey, namespace string, change int) {
	at := selectorPrefix(namespace, source.Provider) + string(source.Cluster)
	n, _ := d.homes.Get(at)
	if n += change; n == 0 {
		d.homes.Delete(at)
		return
	}
	d.homes.Set(at, n)
}

// shardsIn yields the shards that have workloads in the namespace; provider ""
// stands for all.
func (d *draft) shardsIn(namespace string, provider Provider) []ShardKey {
	prefix := selectorPrefix(namespace, provider)
	if provider == "" {
		prefix = namespace + nul
	}
	var found []ShardKey
	d.homes.WalkPrefix(prefix, func(k string, _ int) bool {
		provider, cluster, _ := strings.Cut(k[len(namespace)+len(nul):], nul)
		found = append(found, ShardKey{Cluster: ClusterID(cluster), Provider: Provider(provider)})
		return false
	})
	return found
}

// selected finds the workloads that a shard's selector selects, in an order that
// depends on nothing but them.
func (d *draft) selected(source ShardKey, namespace string, shard *Shard) []selection {
	var found []selection
	for _, p := range shard.Selector.providers() {
		for _, from := range d.shardsIn(namespace, p) {
			d.workloads.WalkPrefix(from.prefix()+namespace+nul, func(k string, w *Workload) bool {
				if !shard.Selector.selects(w) {
					return false
				}
				key := workloadKeyOf(k, from)
				if e, ok := w.endpoint(shard); ok {
					e.Workload = key.String()
					if from.Cluster != source.Cluster {
						e.Cluster = from.Cluster
					}
					found = append(found, selection{shard: from, workload: key, endpoint: e})
				}
				return false
			})
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
