package virtualservice

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	previoushostsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	prioritiesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// SetRetries gives the route, which has its hash policies, its retries: without any said, the default
// ones; with zero attempts, none.
func SetRetries(action *routev3.RouteAction, in *networking.HTTPRetry) error {
	if in != nil && in.GetAttempts() <= 0 {
		return nil
	}
	policy := RetryPolicy(action.GetCluster() != "" && len(action.GetHashPolicy()) > 0)
	action.RetryPolicy = policy
	if in == nil {
		return nil
	}
	policy.NumRetries = wrapperspb.UInt32(uint32(in.GetAttempts()))
	policy.PerTryTimeout = in.GetPerTryTimeout()
	if in.GetRetryOn() != "" {
		policy.RetryOn, policy.RetriableStatusCodes = retryConditions(in.GetRetryOn())
	}
	if in.GetRetryIgnorePreviousHosts() != nil {
		setHosts(policy, !in.GetRetryIgnorePreviousHosts().GetValue())
	}
	if in.GetRetryRemoteLocalities().GetValue() {
		policy.RetryPriority = &routev3.RetryPolicy_RetryPriority{
			Name:       "envoy.retry_priorities.previous_priorities",
			ConfigType: &routev3.RetryPolicy_RetryPriority_TypedConfig{TypedConfig: resource.Any(&prioritiesv3.PreviousPrioritiesConfig{UpdateFrequency: 2})},
		}
	}
	if in.GetBackoff() != nil {
		if in.GetBackoff().AsDuration() < time.Millisecond {
			return fmt.Errorf(".retries.backoff: %s is less than 1ms", in.GetBackoff().AsDuration())
		}
		policy.RetryBackOff = &routev3.RetryPolicy_RetryBackOff{BaseInterval: durationpb.New(in.GetBackoff().AsDuration())}
	}
	return nil
}

// retryConditions tells status codes from the names of conditions.
func retryConditions(list string) (conditions string, codes []uint32) {
	var names []string
	for part := range strings.SplitSeq(list, ",") {
		part = strings.TrimSpace(part)
		if code, err := strconv.ParseUint(part, 10, 32); err == nil {
			codes = append(codes, uint32(code))
		} else if part != "" {
			names = append(names, part)
		}
	}
	if len(codes) > 0 {
		names = append(names, "retriable-status-codes")
	}
	return strings.Join(names, ","), codes
}

// retryOn are the faults after which a request has surely not been worked on,
// or may be repeated by the rules of gRPC.
const retryOn = "connect-failure,refused-stream,reset-before-request,unavailable,cancelled"

// RetryPolicy tries an endpoint that was not tried before, if there is one; the same again where a
// hash of the request decides about its endpoint.
func RetryPolicy(hashed bool) *routev3.RetryPolicy {
	policy := &routev3.RetryPolicy{RetryOn: retryOn, NumRetries: wrapperspb.UInt32(2)}
	setHosts(policy, hashed)
	return policy
}

// setHosts says whether a request may be tried again at the same endpoint.
func setHosts(policy *routev3.RetryPolicy, again bool) {
	if again {
		policy.RetryHostPredicate, policy.HostSelectionRetryMaxAttempts = nil, 0
		return
	}
	policy.HostSelectionRetryMaxAttempts = 5
	policy.RetryHostPredicate = []*routev3.RetryPolicy_RetryHostPredicate{{
		Name:       "envoy.retry_host_predicates.previous_hosts",
		ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: resource.Any(&previoushostsv3.PreviousHostsPredicate{})},
	}}
}
