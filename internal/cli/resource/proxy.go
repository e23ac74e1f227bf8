package resource

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/session"
)

// Proxy finds a proxy by its node ID or the third part of it, with CLUSTER/
// before it where several clusters have such a proxy.
func Proxy(ctx context.Context, s *session.Session, t Target, n Name) (client.ProxySummary, error) {
	answer, err := client.ProxyDetails(ctx, s, n.Name)
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
		if isNamed(one, n.Name) {
			found[ProxyKey(one)] = one
		}
	}
	keys := slices.Sorted(maps.Keys(found))
	switch len(keys) {
	case 0:
		return client.ProxySummary{}, NotFound(t, n)
	case 1:
		return found[keys[0]], nil
	}
	return client.ProxySummary{}, fmt.Errorf("%q is the name of several proxies; use one of %s", n.Name, strings.Join(distinct(keys), ", "))
}

func isNamed(proxy client.ProxySummary, name string) bool {
	key := ProxyKey(proxy)
	return name == proxy.NodeID || name == key || name == shortKey(key) || strings.HasSuffix(shortKey(key), "/"+name)
}

// ProxyKey tells a proxy from those of other clusters with the same node ID.
func ProxyKey(of client.ProxySummary) string { return output.OrEmpty(of.ClusterID) + "/" + of.NodeID }

// shortKey has only the third part of the node ID: c1/web-1.shop.
func shortKey(key string) string {
	cluster, node, _ := strings.Cut(key, "/")
	if parts := strings.Split(node, "~"); len(parts) > 2 {
		return cluster + "/" + parts[2]
	}
	return key
}

// distinct are the short keys, or whole ones of proxies whose short key others have.
func distinct(keys []string) []string {
	count := map[string]int{}
	for _, key := range keys {
		count[shortKey(key)]++
	}
	names := slices.Clone(keys)
	for i, key := range keys {
		if short := shortKey(key); count[short] == 1 {
			names[i] = short
		}
	}
	return names
}
