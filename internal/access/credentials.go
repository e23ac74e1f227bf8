package access

import (
	"cmp"
	"context"
	"strings"

	"google.golang.org/grpc/metadata"

	"isthmus.dev/isthmus/federation"
)

// The metadata of calls in which callers prove who they are.
const (
	bearerKey  = "authorization"  // as Istio's agents and gRPC send tokens
	consulKey  = "x-consul-token" // as proxies that Consul starts send theirs
	clusterKey = "clusterid"      // the cluster that made the token
)

// presented is what a caller reports about itself.
type presented struct {
	token   Token // empty: it shows none
	cluster federation.ClusterID
	consul  bool // the token is for Consul, whichever cluster it is of
}

// credentialsOf reads what a caller reports about itself, as Istio's agents and Consul's proxies do.
func credentialsOf(ctx context.Context) (presented, error) {
	said, _ := metadata.FromIncomingContext(ctx)
	bearers, clusters, secrets := said.Get(bearerKey), said.Get(clusterKey), said.Get(consulKey)
	var shown presented
	switch {
	case len(bearers)+len(secrets) == 0:
		return shown, nil
	case len(bearers)+len(secrets) > 1 || len(clusters) > 1:
		return shown, refusal{"the metadata authorization, x-consul-token and clusterid may be there once, and only one of the first two"}
	case len(clusters) > 0 && len(clusters[0]) > 253:
		return shown, refusal{"the metadata clusterid is longer than an ID may be"}
	case len(clusters) > 0:
		shown.cluster = federation.ClusterID(clusters[0])
	}
	if len(secrets) > 0 {
		shown.token, shown.consul = Token(secrets[0]), true
		return shown, nil
	}
	scheme, bearer, _ := strings.Cut(bearers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || bearer == "" {
		return presented{}, refusal{"the metadata authorization has not the form: Bearer TOKEN"}
	}
	shown.token = Token(bearer)
	return shown, nil
}

// clusterOf is the cluster that made the token.
func (g *Guard) clusterOf(shown presented) (federation.ClusterID, error) {
	if shown.consul {
		return g.o.Tokens.datacenter(g.o.Clusters.Named(shown.cluster))
	}
	named := cmp.Or(shown.cluster, g.o.TokenCluster)
	if named == "" {
		return "",
			refusal{"the metadata clusterid is missing: it names the cluster that made the token (istioctl sends none: set debug.tokenCluster)"}
	}
	return g.o.Clusters.Named(named), nil
}
