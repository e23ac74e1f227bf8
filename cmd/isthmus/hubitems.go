package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"isthmus.dev/isthmus/client"
)

func hubHeads(hub string) heads {
	switch hub {
	case hubServices:
		return heads{names: []string{"NAMESPACE", "HOSTNAME", "VIPS", "PORTS", "ENDPOINTS", "CONFLICTS", "CLUSTERS", "RESOLUTION"}, wide: 2}
	case hubNetworks:
		return heads{names: []string{"", "NAME", "GATED", "GATEWAYS", "CLUSTERS", "CIDRS", "REFUSED"}, wide: 1}
	case hubClusters:
		return heads{names: []string{"", "NAME", "PROVIDER", "NETWORK", "PHASE", "SERVICES", "ENDPOINTS", "LAST-EVENT", "PRECEDENCE", "PROBLEMS", "MESSAGE"}, wide: 3}
	}
	return heads{names: []string{"", "NAME", "TYPE", "CLUSTER", "NETWORK", "STATUS", "AGE", "CDS", "LDS", "EDS", "RDS", "USER-AGENT"}, wide: 5}
}

// hubItems yields what the hub has of its own.
func hubItems(ctx context.Context, s *session, hub string, which selection) iter.Seq2[item, error] {
	switch hub {
	case hubServices:
		return items(s.Services(ctx, &client.ServiceFilter{Namespace: which.namespace}), serviceItem)
	case hubClusters:
		return items(s.Clusters(ctx), clusterItem)
	case hubNetworks:
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
	value, err := shownAs("Service", of)
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
			of.Namespace, of.Hostname, orDash(strings.Join(vips, ",")), orDash(strings.Join(ports, ",")), fmt.Sprint(of.Endpoints.TotalCount),
			fmt.Sprint(len(of.Conflicts)), orDash(strings.Join(clusters, ",")), string(of.Resolution),
		},
	}, err
}

func clusterItem(of client.ClusterSummary) (item, error) {
	value, err := shownAs("Cluster", of)
	return item{
		key: of.ClusterID, id: "cluster/" + of.ClusterID, value: value,
		cells: []string{
			"", of.ClusterID, string(of.Provider), of.NetworkID, string(of.Status.Phase), fmt.Sprint(of.Services.TotalCount), fmt.Sprint(of.Endpoints.TotalCount),
			age(of.Status.LastEventAt), fmt.Sprint(of.Precedence), fmt.Sprint(of.Problems.TotalCount), orDash(orEmpty(of.Status.Message)),
		},
	}, err
}

func networkItem(of client.NetworkSummary) (item, error) {
	value, err := shownAs("Network", of)
	var gateways, refused []string
	for _, g := range of.Gateways {
		gateways = append(gateways, g.Address)
	}
	for _, r := range of.RefusedGateways {
		refused = append(refused, r.Gateway)
	}
	list := func(all []string) string { return orDash(strings.Join(all, ",")) }
	return item{
		key: of.NetworkID, id: "network/" + of.NetworkID, value: value,
		cells: []string{"", of.NetworkID, fmt.Sprint(of.Gated), list(gateways), list(of.ClusterIDs), list(of.Cidrs), list(refused)},
	}, err
}

// mainTypes are the types of which a column tells the state.
func mainTypes() []string {
	return []string{"Cluster", "Listener", "ClusterLoadAssignment", "RouteConfiguration"}
}

func proxyItem(of client.ProxySummary) (item, error) {
	value, err := shownAs("Proxy", of)
	cells := []string{"", of.NodeID, string(of.Type), orEmpty(of.ClusterID), of.NetworkID, syncOf(of.Sync), age(&of.ConnectedAt)}
	for _, typ := range mainTypes() {
		state := "-"
		for _, s := range of.Sync {
			if typeName(s.TypeUrl) == typ {
				state = string(s.State)
			}
		}
		cells = append(cells, state)
	}
	return item{key: proxyKey(of), id: "proxy/" + of.NodeID, value: value, cells: append(cells, orDash(orEmpty(of.UserAgent)))}, err
}

// proxyKey tells a proxy from those of other clusters with the same node ID.
func proxyKey(of client.ProxySummary) string { return orEmpty(of.ClusterID) + "/" + of.NodeID }

func typeName(url string) string { return url[strings.LastIndexAny(url, "./")+1:] }

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
