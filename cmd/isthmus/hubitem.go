package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"isthmus.dev/isthmus/client"
)

// hubItem gets one thing of the hub's own by its key.
func hubItem(ctx context.Context, s *session, t target, n named) (item, error) {
	switch t.hub {
	case hubServices:
		return serviceByName(ctx, s, t, n)
	case hubClusters:
		answer, err := client.ClusterByID(ctx, s, n.name)
		if err != nil || answer.Cluster == nil {
			return item{}, orNotFound(err, t, n)
		}
		return clusterItem(*answer.Cluster)
	case hubNetworks:
		answer, err := client.NetworkByID(ctx, s, n.name)
		if err != nil || answer.Network == nil {
			return item{}, orNotFound(err, t, n)
		}
		return networkItem(*answer.Network)
	}
	proxy, err := proxyByName(ctx, s, t, n)
	if err != nil {
		return item{}, err
	}
	return proxyItem(proxy)
}

// proxyByName finds a proxy by its node ID or the third part of it, with CLUSTER/
// before it where several clusters have such a proxy.
func proxyByName(ctx context.Context, s *session, t target, n named) (client.ProxySummary, error) {
	answer, err := client.ProxyDetails(ctx, s, n.name)
	if err != nil {
		return client.ProxySummary{}, err
	}
	if answer.Proxy != nil {
		return *answer.Proxy, nil
	}
	found := map[string]client.ProxySummary{}
	for one, err := range s.Proxies(ctx, nil) {
		if err != nil {
			return client.ProxySummary{}, err
		}
		if isNamed(one, n.name) {
			found[proxyKey(one)] = one
		}
	}
	names := slices.Sorted(maps.Keys(found))
	switch len(names) {
	case 0:
		return client.ProxySummary{}, notFound(t, n)
	case 1:
		return found[names[0]], nil
	}
	return client.ProxySummary{}, fmt.Errorf("%q is the name of several proxies; use one of %s", n.name, strings.Join(names, ", "))
}

func isNamed(proxy client.ProxySummary, name string) bool {
	if proxy.NodeID == name || proxyKey(proxy) == name {
		return true
	}
	parts := strings.Split(proxy.NodeID, "~")
	return len(parts) > 2 && (parts[2] == name || orEmpty(proxy.ClusterID)+"/"+parts[2] == name)
}

func orNotFound(err error, t target, n named) error {
	if err != nil {
		return err
	}
	return notFound(t, n)
}

func serviceByName(ctx context.Context, s *session, t target, n named) (item, error) {
	n, err := fullName(ctx, s, t, n)
	if err != nil {
		return item{}, err
	}
	answer, err := client.ServiceByName(ctx, s, n.name, &n.namespace)
	if err != nil || answer.Service == nil {
		return item{}, orNotFound(err, t, n)
	}
	return serviceItem(*answer.Service)
}

// fullName finds the hostname of a service of which only the first labels are
// given, as reviews or reviews.shop for reviews.shop.svc.cluster.local.
func fullName(ctx context.Context, s *session, t target, n named) (named, error) {
	answer, err := client.ServiceByName(ctx, s, n.name, &n.namespace)
	if err != nil || answer.Service != nil {
		return n, err
	}
	var found []string
	for one, err := range s.Services(ctx, &client.ServiceFilter{Namespace: &n.namespace, HostnameContains: &n.name}) {
		if err != nil {
			return n, err
		}
		if strings.HasPrefix(one.Hostname, strings.ToLower(n.name)+".") {
			found = append(found, one.Hostname)
		}
	}
	switch len(found) {
	case 0:
		return n, notFound(t, n)
	case 1:
		return named{namespace: n.namespace, name: found[0]}, nil
	}
	return n, fmt.Errorf("%q is the name of several services; use one of %s", n.name, strings.Join(found, ", "))
}
