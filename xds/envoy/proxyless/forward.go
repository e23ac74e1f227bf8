package proxyless

import (
	"regexp"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// channelID is the key by which gRPC hashes all calls of a channel alike.
const channelID = "io.grpc.channel_id"

func wholeMatch(pattern, text string) bool {
	re, err := regexp.Compile("^(?:" + pattern + ")$")
	return err == nil && re.MatchString(text)
}

// action keeps the destinations, the time limit, retries and hashing.
func (g grpcRoute) action(in *routev3.RouteAction) *routev3.RouteAction {
	out := &routev3.RouteAction{HashPolicy: g.hashing(in.GetHashPolicy()), RetryPolicy: g.retries(in.GetRetryPolicy())}
	switch to := in.GetClusterSpecifier().(type) {
	case *routev3.RouteAction_WeightedClusters:
		split := &routev3.WeightedCluster{}
		for _, w := range to.WeightedClusters.GetClusters() {
			split.Clusters = append(split.Clusters, &routev3.WeightedCluster_ClusterWeight{Name: w.GetName(), Weight: w.GetWeight()})
		}
		out.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: split}
	default:
		out.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: in.GetCluster()}
	}
	if limit := in.GetTimeout(); limit.AsDuration() > 0 {
		out.MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{MaxStreamDuration: limit}
	}
	rewritten := in.GetPrefixRewrite() != "" || in.GetRegexRewrite() != nil || in.GetHostRewriteSpecifier() != nil
	for _, w := range in.GetWeightedClusters().GetClusters() {
		rewritten = rewritten || w.GetHostRewriteSpecifier() != nil
	}
	if rewritten {
		g.ignored("rewrite", "path and authority stay as they are")
	}
	if len(in.GetRequestMirrorPolicies()) > 0 {
		g.ignored("mirror", "no copies are sent")
	}
	return out
}

// grpcConditions are the conditions of retries that gRPC knows.
var grpcConditions = []string{"cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable"}

// faultsOfConnections are conditions that gRPC sees as unavailable.
var faultsOfConnections = []string{"5xx", "gateway-error", "connect-failure", "refused-stream", "reset", "reset-before-request"}

// retries keeps the conditions that gRPC knows. A rule that retries where
// a connection fails also retries where the call is UNAVAILABLE.
func (g grpcRoute) retries(in *routev3.RetryPolicy) *routev3.RetryPolicy {
	if in.GetNumRetries().GetValue() == 0 {
		return nil
	}
	var known, unknown []string
	for condition := range strings.SplitSeq(in.GetRetryOn(), ",") {
		switch {
		case slices.Contains(grpcConditions, condition):
			known = append(known, condition)
		case slices.Contains(faultsOfConnections, condition):
			known = append(known, "unavailable")
		default:
			unknown = append(unknown, condition)
		}
	}
	if len(unknown) > 0 {
		g.ignored("retries.retryOn "+strings.Join(unknown, ","), "gRPC knows of its own statuses only")
	}
	if in.GetPerTryTimeout().AsDuration() > 0 {
		g.ignored("retries.perTryTimeout", "only the whole call has a time limit")
	}
	if len(known) == 0 {
		return nil
	}
	slices.Sort(known)
	out := &routev3.RetryPolicy{
		RetryOn:    strings.Join(slices.Compact(known), ","),
		NumRetries: wrapperspb.UInt32(in.GetNumRetries().GetValue()),
	}
	if backoff := in.GetRetryBackOff(); backoff.GetBaseInterval().AsDuration() > 0 {
		out.RetryBackOff = backoff
	}
	return out
}

// hashing keeps hashes of headers. The address of a gRPC client's own calls is
// that of its channel.
func (g grpcRoute) hashing(in []*routev3.RouteAction_HashPolicy) []*routev3.RouteAction_HashPolicy {
	var out []*routev3.RouteAction_HashPolicy
	for _, p := range in {
		switch {
		case p.GetHeader() != nil:
			out = append(out, p)
		case p.GetConnectionProperties().GetSourceIp():
			out = append(out, &routev3.RouteAction_HashPolicy{PolicySpecifier: &routev3.RouteAction_HashPolicy_FilterState_{
				FilterState: &routev3.RouteAction_HashPolicy_FilterState{Key: channelID},
			}})
		default:
			g.ignored("consistentHash", "calls are hashed by header or by caller only")
		}
	}
	return out
}
