package get

import (
	"context"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/resource"
	"isthmus.dev/isthmus/internal/cli/session"
)

// hubItem gets one thing of the hub's own by its key.
func hubItem(ctx context.Context, s *session.Session, t resource.Target, n resource.Name) (item, error) {
	switch t.Hub {
	case resource.Services:
		return serviceByName(ctx, s, t, n)
	case resource.Clusters:
		answer, err := client.ClusterByID(ctx, s, n.Name)
		if err != nil || answer.Cluster == nil {
			return item{}, resource.OrNotFound(err, t, n)
		}
		return clusterItem(*answer.Cluster)
	case resource.Networks:
		answer, err := client.NetworkByID(ctx, s, n.Name)
		if err != nil || answer.Network == nil {
			return item{}, resource.OrNotFound(err, t, n)
		}
		return networkItem(*answer.Network)
	}
	proxy, err := resource.Proxy(ctx, s, t, n)
	if err != nil {
		return item{}, err
	}
	return proxyItem(proxy)
}

func serviceByName(ctx context.Context, s *session.Session, t resource.Target, n resource.Name) (item, error) {
	n, err := resource.Hostname(ctx, s, t, n)
	if err != nil {
		return item{}, err
	}
	answer, err := client.ServiceByName(ctx, s, n.Name, &n.Namespace)
	if err != nil || answer.Service == nil {
		return item{}, resource.OrNotFound(err, t, n)
	}
	return serviceItem(*answer.Service)
}
