package destinationrule

import (
	"math"
	"strconv"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	commonmatcherv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/matcher/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	upstreamhttpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// SetLimits puts the policy's limits in the place of none.
func SetLimits(c *clusterv3.Cluster, policy *networking.TrafficPolicy) {
	tcp, http := policy.GetConnectionPool().GetTcp(), policy.GetConnectionPool().GetHttp()
	limits := c.GetCircuitBreakers().GetThresholds()[0]
	for _, l := range []struct {
		limit *wrapperspb.UInt32Value
		value int32
	}{
		{limits.GetMaxConnections(), tcp.GetMaxConnections()},
		{limits.GetMaxPendingRequests(), http.GetHttp1MaxPendingRequests()},
		{limits.GetMaxRequests(), http.GetHttp2MaxRequests()},
		{limits.GetMaxRetries(), http.GetMaxRetries()},
	} {
		if l.value > 0 {
			l.limit.Value = uint32(l.value)
		}
	}
	if budget := policy.GetRetryBudget(); budget != nil {
		limits.MaxRetries, limits.RetryBudget = nil, retryBudget(budget)
	}
	if timeout := tcp.GetConnectTimeout(); timeout.AsDuration() > 0 {
		c.ConnectTimeout = timeout
	}
	if alive := tcp.GetTcpKeepalive(); alive != nil {
		c.UpstreamConnectionOptions = &clusterv3.UpstreamConnectionOptions{TcpKeepalive: keepalive(alive)}
	}
}

func retryBudget(budget *networking.TrafficPolicy_RetryBudget) *clusterv3.CircuitBreakers_Thresholds_RetryBudget {
	b := &clusterv3.CircuitBreakers_Thresholds_RetryBudget{}
	if percent := budget.GetPercent(); percent != nil {
		b.BudgetPercent = &typev3.Percent{Value: min(max(percent.GetValue(), 0), 100)}
	}
	if n := budget.GetMinRetryConcurrency(); n > 0 {
		b.MinRetryConcurrency = wrapperspb.UInt32(n)
	}
	b.BudgetInterval = positive(budget.GetBudgetInterval())
	return b
}

func keepalive(alive *networking.ConnectionPoolSettings_TCPSettings_TcpKeepalive) *corev3.TcpKeepalive {
	k := &corev3.TcpKeepalive{KeepaliveTime: seconds(alive.GetTime()), KeepaliveInterval: seconds(alive.GetInterval())}
	if n := alive.GetProbes(); n > 0 {
		k.KeepaliveProbes = wrapperspb.UInt32(n)
	}
	return k
}

// seconds rounds up; nil where the kernel is to choose.
func seconds(d *durationpb.Duration) *wrapperspb.UInt32Value {
	if d.AsDuration() <= 0 {
		return nil
	}
	whole := (d.AsDuration() + time.Second - 1) / time.Second
	return wrapperspb.UInt32(uint32(min(whole, math.MaxInt16))) // the kernel's limit
}

// HTTPOptions are what requests to a port of that protocol need to be told of: nil where
// HTTP/1.1 without limits is meant, or no HTTP at all. asCaller: they go in the protocol of the
// caller, as where the policy says so.
func HTTPOptions(speaks federation.Protocol, asCaller bool, policy *networking.TrafficPolicy) *upstreamhttpv3.HttpProtocolOptions {
	if !speaks.IsHTTP() {
		return nil
	}
	common, streams := commonOptions(policy), streamLimit(policy)
	http := policy.GetConnectionPool().GetHttp()
	o := &upstreamhttpv3.HttpProtocolOptions{CommonHttpProtocolOptions: common}
	http2 := &corev3.Http2ProtocolOptions{MaxConcurrentStreams: streams, ConnectionKeepalive: Pings(http.GetHttp2KeepAlive())}
	o.OutlierDetection = countedErrors(policy.GetOutlierDetection())
	switch {
	case asCaller || http.GetUseClientProtocol():
		o.UpstreamProtocolOptions = &upstreamhttpv3.HttpProtocolOptions_UseDownstreamProtocolConfig{
			UseDownstreamProtocolConfig: &upstreamhttpv3.HttpProtocolOptions_UseDownstreamHttpConfig{
				HttpProtocolOptions: &corev3.Http1ProtocolOptions{}, Http2ProtocolOptions: http2,
			},
		}
	case SpeaksHTTP2(speaks, policy):
		o.UpstreamProtocolOptions = explicitHTTP(&upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: http2},
		})
	case common != nil || o.GetOutlierDetection() != nil || IsTLS(policy.GetTls()):
		o.UpstreamProtocolOptions = explicitHTTP(&upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{HttpProtocolOptions: &corev3.Http1ProtocolOptions{}},
		})
	default:
		return nil
	}
	return o
}

// Pings are sent on connections of HTTP/2, if the policy says how often and for how long
// to wait for the answer; nil: it does not.
func Pings(alive *networking.ConnectionPoolSettings_HTTPSettings_ConnectionKeepalive) *corev3.KeepaliveSettings {
	interval, timeout := alive.GetInterval(), alive.GetTimeout()
	if min(interval.AsDuration(), timeout.AsDuration()) < time.Millisecond {
		return nil
	}
	return &corev3.KeepaliveSettings{Interval: interval, Timeout: timeout}
}

// countedErrors match the responses that outlier detection counts instead of 5xx; nil: the
// policy lists none.
func countedErrors(o *networking.OutlierDetection) *upstreamhttpv3.HttpProtocolOptions_OutlierDetection {
	var codes []string
	for _, code := range o.GetOutlierDetectionHttpErrorCodes() {
		codes = append(codes, strconv.FormatUint(uint64(code), 10))
	}
	if len(codes) == 0 {
		return nil
	}
	status := &routev3.HeaderMatcher{
		Name: ":status",
		HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: &matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: strings.Join(codes, "|")}},
		}},
	}
	return &upstreamhttpv3.HttpProtocolOptions_OutlierDetection{ErrorMatcher: &commonmatcherv3.MatchPredicate{
		Rule: &commonmatcherv3.MatchPredicate_HttpResponseHeadersMatch{
			HttpResponseHeadersMatch: &commonmatcherv3.HttpHeadersMatch{Headers: []*routev3.HeaderMatcher{status}},
		},
	}}
}

func explicitHTTP(config *upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig) *upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig_ {
	return &upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: config}
}

// SpeaksHTTP2 reports whether requests go in HTTP/2 whatever the caller speaks.
func SpeaksHTTP2(speaks federation.Protocol, policy *networking.TrafficPolicy) bool {
	http := policy.GetConnectionPool().GetHttp()
	return !http.GetUseClientProtocol() && speaks.IsHTTP() &&
		(speaks.IsHTTP2() || http.GetH2UpgradePolicy() == networking.ConnectionPoolSettings_HTTPSettings_UPGRADE)
}

func commonOptions(policy *networking.TrafficPolicy) *corev3.HttpProtocolOptions {
	tcp, http := policy.GetConnectionPool().GetTcp(), policy.GetConnectionPool().GetHttp()
	o := &corev3.HttpProtocolOptions{IdleTimeout: http.GetIdleTimeout()}
	if o.IdleTimeout == nil {
		o.IdleTimeout = tcp.GetIdleTimeout()
	}
	if d := tcp.GetMaxConnectionDuration(); d.AsDuration() > 0 {
		o.MaxConnectionDuration = d
	}
	if n := http.GetMaxRequestsPerConnection(); n > 0 {
		o.MaxRequestsPerConnection = wrapperspb.UInt32(uint32(n))
	}
	if o.IdleTimeout == nil && o.MaxConnectionDuration == nil && o.MaxRequestsPerConnection == nil {
		return nil
	}
	return o
}

func streamLimit(policy *networking.TrafficPolicy) *wrapperspb.UInt32Value {
	if n := policy.GetConnectionPool().GetHttp().GetMaxConcurrentStreams(); n > 0 {
		return wrapperspb.UInt32(uint32(n))
	}
	return nil
}
