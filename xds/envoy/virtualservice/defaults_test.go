package virtualservice

import (
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1"
)

// TestG94DefaultsOfVirtualServices: what a route does not say is as Istio's reference has it. Where Envoy gets no value,
// its own default is meant.
func TestG94DefaultsOfVirtualServices(t *testing.T) {
	retries := func(in *networking.HTTPRetry) *routev3.RetryPolicy {
		action := &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: "a"}}
		if err := SetRetries(action, in); err != nil {
			t.Fatal(err)
		}
		return action.GetRetryPolicy()
	}
	redirect, err := Redirect(&networking.HTTPRedirect{Authority: "a.example"}, 80, false)
	if err != nil {
		t.Fatal(err)
	}
	cors, err := corsOf(&networking.CorsPolicy{})
	if err != nil {
		t.Fatal(err)
	}
	fault, err := faultOf(&networking.HTTPFaultInjection{
		Delay: &networking.HTTPFaultInjection_Delay{
			HttpDelayType: &networking.HTTPFaultInjection_Delay_FixedDelay{FixedDelay: durationpb.New(1)},
		},
		Abort: &networking.HTTPFaultInjection_Abort{ErrorType: &networking.HTTPFaultInjection_Abort_HttpStatus{HttpStatus: 500}},
	})
	if err != nil {
		t.Fatal(err)
	}
	none, three := retries(nil), retries(&networking.HTTPRetry{Attempts: 3})
	for _, c := range []struct {
		field     string
		got, want any
	}{
		{"retries", none.GetNumRetries().GetValue(), uint32(2)},
		{"retries", none.GetRetryOn(), "connect-failure,refused-stream,reset-before-request,unavailable,cancelled"},
		{"retries.retryOn", three.GetRetryOn(), none.GetRetryOn()},
		{"retries.perTryTimeout", three.GetPerTryTimeout() == nil, true},             // that of the request
		{"retries.backoff", three.GetRetryBackOff() == nil, true},                    // 25ms
		{"retries.retryIgnorePreviousHosts", len(three.GetRetryHostPredicate()), 1},  // true
		{"retries.retryRemoteLocalities", three.GetRetryPriority() == nil, true},     // false
		{"retries, with no attempts", retries(&networking.HTTPRetry{}) == nil, true}, // none
		{"redirect.redirectCode", redirect.Redirect.GetResponseCode(), routev3.RedirectAction_MOVED_PERMANENTLY},
		{"redirect.port", redirect.Redirect.GetPortRedirect(), uint32(0)},
		{"redirect.scheme", redirect.Redirect.GetSchemeRedirect(), ""},
		{"corsPolicy.maxAge", cors.GetMaxAge(), ""},
		{"corsPolicy.allowCredentials", cors.GetAllowCredentials() == nil, true},
		{"corsPolicy.unmatchedPreflights", cors.GetForwardNotMatchingPreflights() == nil, true}, // FORWARD
		{"fault.delay.percentage", fault.GetDelay().GetPercentage().GetNumerator(), uint32(0)},
		{"fault.abort.percentage", fault.GetAbort().GetPercentage().GetNumerator(), uint32(0)},
	} {
		if c.got != c.want {
			t.Errorf("without %s, Envoy uses %v, want %v", c.field, c.got, c.want)
		}
	}
}
