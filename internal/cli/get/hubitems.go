package get

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/resource"
	"isthmus.dev/isthmus/internal/cli/session"
	xds "isthmus.dev/isthmus/xds/envoy/resource"
)

func hubHeads(hub string) heads {
	switch hub {
	case resource.Services:
		return heads{names: []string{"NAMESPACE", "HOSTNAME", "VIPS", "PORTS", "ENDPOINTS", "CONFLICTS", "CLUSTERS", "RESOLUTION"}, wide: 2}
	case resource.Networks:
		return heads{names: []string{"", "NAME", "GATED", "GATEWAYS", "CLUSTERS", "CIDRS", "REFUSED"}, wide: 1}
	case resource.Clusters:
		return heads{names: []string{
			"", "NAME", "PROVIDER", "NETWORK", "PHASE", "SERVICES", "ENDPOINTS", "LAST-EVENT", "PRECEDENCE",
			"PROBLEMS", "MESSAGE",
		}, wide: 3}
	}
	names := []string{"", "NAME", "TYPE", "CLUSTER", "NETWORK", "STATUS", "AGE"}
	for _, t := range shownTypes() {
		names = append(names, t.Row().Service)
	}
	return heads{names: append(names, "USER-AGENT"), wide: 5}
}

// hubItems yields what the hub has of its own.
func hubItems(ctx context.Context, s *session.Session, hub string, which selection) iter.Seq2[item, error] {
	switch hub {
	case resource.Services:
		return items(s.Services(ctx, &client.ServiceFilter{Namespace: which.namespace}), serviceItem)
	case resource.Clusters:
		return items(s.Clusters(ctx), clusterItem)
	case resource.Networks:
		return items(s.Networks(ctx), networkItem)
	}
	return items(s.Proxies(ctx, nil), proxyItem)
}

func items[T any](from iter.Seq2[T, error], show func(T) (item, error)) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		for thing, err := range from {
			var shown item
			if err == nil {
				shown, err = show(thing)
			}
			if !yield(shown, err) || err != nil {
				return
			}
		}
	}
}

func serviceItem(of client.ServiceSummary) (item, error) {
	value, err := output.ShownAs("Service", of)
	var vips, clusters, ports []string
	for _, v := range of.ClusterVIPs {
		vips = append(vips, v.ClusterID+"="+strings.Join(v.Addresses, "+"))
	}
	seen := map[string]bool{}
	for _, p := range of.Ports {
		ports = append(ports, fmt.Sprintf("%d/%s", p.Number, p.Protocol))
		for _, id := range p.ClusterIDs {
			if !seen[id] {
				seen[id] = true
				clusters = append(clusters, id)
			}
		}
	}
	name := "service/" + of.Namespace + "/" + of.Hostname
	return item{
		key: name, id: name, value: value,
		cells: []string{
			of.Namespace, of.Hostname, output.OrDash(strings.Join(vips, ",")), output.OrDash(strings.Join(ports, ",")),
			fmt.Sprint(of.Endpoints.TotalCount),
			fmt.Sprint(len(of.Conflicts)), output.OrDash(strings.Join(clusters, ",")), string(of.Resolution),
		},
	}, err
}

func clusterItem(of client.ClusterSummary) (item, error) {
	value, err := output.ShownAs("Cluster", of)
	return item{
		key: of.ClusterID, id: "cluster/" + of.ClusterID, value: value,
		cells: []string{
			"", of.ClusterID, string(of.Provider), of.NetworkID, string(of.Status.Phase), fmt.Sprint(of.Services.TotalCount),
			fmt.Sprint(of.Endpoints.TotalCount),
			output.Age(of.Status.LastEventAt), fmt.Sprint(of.Precedence), fmt.Sprint(of.Problems.TotalCount),
			output.OrDash(output.OrEmpty(of.Status.Message)),
		},
	}, err
}

func networkItem(of client.NetworkSummary) (item, error) {
	value, err := output.ShownAs("Network", of)
	var gateways, refused []string
	for _, g := range of.Gateways {
		gateways = append(gateways, g.Address)
	}
	for _, r := range of.RefusedGateways {
		refused = append(refused, r.Gateway)
	}
	list := func(all []string) string { return output.OrDash(strings.Join(all, ",")) }
	return item{
		key: of.NetworkID, id: "network/" + of.NetworkID, value: value,
		cells: []string{"", of.NetworkID, fmt.Sprint(of.Gated), list(gateways), list(of.ClusterIDs), list(of.Cidrs), list(refused)},
	}, err
}

// shownTypes are the types of which a column tells the state. As in istioctl, those come first of which a proxy takes all.
func shownTypes() []xds.Type {
	types := xds.TypesWith(xds.Shown)
	slices.SortStableFunc(types, func(a, b xds.Type) int { return xds.CompareTrueFirst(a.Has(xds.Rooted), b.Has(xds.Rooted)) })
	return types
}

func proxyItem(of client.ProxySummary) (item, error) {
	value, err := output.ShownAs("Proxy", of)
	cells := []string{"", of.NodeID, string(of.Type), output.OrEmpty(of.ClusterID), of.NetworkID, syncOf(of.Sync), output.Age(&of.ConnectedAt)}
	for _, t := range shownTypes() {
		state := "-"
		for _, s := range of.Sync {
			if s.TypeUrl == string(t) {
				state = string(s.State)
			}
		}
		cells = append(cells, state)
	}
	return item{
		key: resource.ProxyKey(of), id: "proxy/" + of.NodeID, value: value,
		cells: append(cells, output.OrDash(output.OrEmpty(of.UserAgent))),
	}, err
}

// syncOf is the worst state of a proxy's types.
func syncOf(all []client.TypeSync) string {
	worst := client.SyncStateSynced
	for _, s := range all {
		switch s.State {
		case client.SyncStateNacked:
			return string(s.State)
		case client.SyncStatePending:
			worst = s.State
		}
	}
	return string(worst)
}
