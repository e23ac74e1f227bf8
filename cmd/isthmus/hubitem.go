package main

import (
	"context"
	"fmt"
	"strings"

	"isthmus.dev/isthmus/client"
)

// hubItem gets one thing of the hub's own by its key.
func (s *session) hubItem(ctx context.Context, t target, n named) (item, error) {
	switch t.hub {
	case hubServices:
		return s.serviceByName(ctx, t, n)
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
	answer, err := client.ProxyDetails(ctx, s, n.name)
	if err != nil || answer.Proxy == nil {
		return item{}, orNotFound(err, t, n)
	}
	return proxyItem(*answer.Proxy)
}

func orNotFound(err error, t target, n named) error {
	if err != nil {
		return err
	}
	return notFound(t, n)
}

func (s *session) serviceByName(ctx context.Context, t target, n named) (item, error) {
	n, err := s.fullName(ctx, t, n)
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
func (s *session) fullName(ctx context.Context, t target, n named) (named, error) {
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
	return n, fmt.Errorf("%q may be each of the services %s; write which", n.name, strings.Join(found, ", "))
}
