package get

import (
	"cmp"
	"maps"
	"slices"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/resource"
)

// change is one thing of the change feed as a watch shows it. Of what is gone, only the
// key counts.
type change struct {
	now  item
	gone bool
	err  error
}

// changes are those of an event, in its order.
func (w *watcher) changes(e client.Event) []change {
	var all []change
	add := func(action client.ChangeAction, one item, err error) {
		all = append(all, change{one, action == client.ChangeActionDelete, err})
	}
	for _, c := range e.Services {
		one, err := serviceItem(c.Service)
		add(c.Action, one, err)
	}
	for _, c := range e.Clusters {
		one, err := clusterItem(c.Cluster)
		add(c.Action, one, err)
	}
	for _, c := range e.Networks {
		one, err := networkItem(c.Network)
		add(c.Action, one, err)
	}
	for _, c := range e.ConfigObjects {
		one, err := changedObject(c)
		all = append(all, change{one, one.value == nil, err})
	}
	return append(all, w.streams.take(e)...)
}

// changedObject is the object as it is now. One that does not exist any more has only
// its key and its ID, also where its deletion is a later event.
func changedObject(c client.ConfigObjectChange) (item, error) {
	if c.Action == client.ChangeActionDelete || c.Object.Current == nil {
		return item{key: output.RefTitle(c.Object.Ref), id: output.RefName(c.Object.Ref)}, nil
	}
	return objectItem(*c.Object.Current)
}

// proxyStreams are the streams of proxies, by the key of the proxy and the ID of the
// stream. A proxy is shown as its newest stream, and is gone with its last one.
type proxyStreams map[string]map[string]client.ProxySummary

// take returns the proxies whose streams an event changes. Of the whole state it returns
// all of them with the last event.
func (p proxyStreams) take(e client.Event) []change {
	touched := map[string]bool{}
	for _, c := range e.Proxies {
		key := resource.ProxyKey(c.Proxy.ProxySummary)
		touched[key] = true
		if c.Action == client.ChangeActionDelete {
			delete(p[key], c.Proxy.Id)
			continue
		}
		if p[key] == nil {
			p[key] = map[string]client.ProxySummary{}
		}
		p[key][c.Proxy.Id] = c.Proxy.ProxySummary
	}
	switch {
	case e.Resync && e.Cursor == nil:
		return nil
	case e.Resync:
		for key := range p {
			touched[key] = true
		}
	}
	var all []change
	for _, key := range slices.Sorted(maps.Keys(touched)) {
		all = append(all, p.change(key))
	}
	return all
}

func (p proxyStreams) change(key string) change {
	if len(p[key]) == 0 {
		delete(p, key)
		return change{now: item{key: key}, gone: true}
	}
	newest := slices.MaxFunc(slices.Collect(maps.Values(p[key])), func(a, b client.ProxySummary) int {
		return cmp.Compare(a.ConnectedAt.UnixNano(), b.ConnectedAt.UnixNano())
	})
	one, err := proxyItem(newest)
	return change{now: one, err: err}
}
