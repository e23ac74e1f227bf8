package validation

import (
	"strconv"
	"strings"

	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation/config/schema"
)

// maxBody bounds the body of a direct response.
const maxBody = 1 << 20

var httpRouteRules = []rule[*api.HTTPRoute]{
	{"", schema.Required, func(r *api.HTTPRoute) string {
		return when(len(r.GetRoute()) == 0 && r.GetRedirect() == nil && r.GetDirectResponse() == nil && r.GetDelegate() == nil,
			"the route goes nowhere: write route, redirect, directResponse or delegate")
	}},
	{"redirect", schema.Forbidden, func(r *api.HTTPRoute) string {
		return when(r.GetRedirect() != nil && len(r.GetRoute()) > 0, "a route has destinations or redirects, not both: remove route or redirect")
	}},
	{"directResponse", schema.Forbidden, func(r *api.HTTPRoute) string {
		return when(r.GetDirectResponse() != nil && (len(r.GetRoute()) > 0 || r.GetRedirect() != nil),
			"a route answers by itself, redirects or has destinations: keep one of directResponse, redirect and route")
	}},
	{"delegate", schema.Forbidden, func(r *api.HTTPRoute) string {
		return when(r.GetDelegate() != nil && (len(r.GetRoute()) > 0 || r.GetRedirect() != nil || r.GetDirectResponse() != nil),
			"a route that delegates has no route, redirect or directResponse of its own: remove them, or delegate")
	}},
	{"rewrite", schema.Forbidden, func(r *api.HTTPRoute) string {
		return when(r.GetRewrite() != nil && (r.GetRedirect() != nil || r.GetDirectResponse() != nil),
			"only requests that go to a destination are rewritten: remove rewrite, or redirect and directResponse")
	}},
	{"fault", schema.Forbidden, func(r *api.HTTPRoute) string {
		return when(r.GetFault() != nil && r.GetRedirect() != nil, "a route that redirects injects no faults: remove fault or redirect")
	}},
	{"fault", schema.Forbidden, func(r *api.HTTPRoute) string {
		return when(r.GetFault() != nil && r.GetDirectResponse() != nil,
			"a route that answers by itself injects no faults: remove fault or directResponse")
	}},
	{"timeout", schema.Invalid, func(r *api.HTTPRoute) string { return wholeMilliseconds(r.GetTimeout()) }},
	{"mirrors", schema.Forbidden, func(r *api.HTTPRoute) string {
		return when(r.GetMirror() != nil && len(r.GetMirrors()) > 0, "mirror is the older form of mirrors: move its host to mirrors")
	}},
	{"mirrorPercent", schema.Invalid, func(r *api.HTTPRoute) string {
		return when(r.GetMirrorPercent().GetValue() > 100, "%d is not a percentage: write 0 to 100", r.GetMirrorPercent().GetValue())
	}},
	{"mirrorPercentage.value", schema.Invalid, func(r *api.HTTPRoute) string { return percent(r.GetMirrorPercentage()) }},
	{"headers.request.set", schema.Forbidden, func(r *api.HTTPRoute) string {
		return when(r.GetRewrite().GetAuthority() != "" && setsHost(r.GetHeaders()) > 0,
			"rewrite.authority sets the host, too: remove one of the two")
	}},
	{"headers.request", schema.Forbidden, func(r *api.HTTPRoute) string {
		return when(setsHost(r.GetHeaders()) > 1, "the host is set more than once: write it once")
	}},
}

func httpRoute(at path, r *api.HTTPRoute) []Problem {
	found := apply(at, r, httpRouteRules)
	found = append(found, each(at.field("match"), r.GetMatch(), httpMatch)...)
	found = append(found, destinations(at.field("route"), r.GetRoute())...)
	found = append(found, each(at.field("route"), r.GetRoute(), func(at path, to *api.HTTPRouteDestination) []Problem {
		return optional(at.field("headers"), to.GetHeaders(), headers)
	})...)
	found = append(found, optional(at.field("redirect"), r.GetRedirect(), by(redirectRules))...)
	found = append(found, optional(at.field("directResponse"), r.GetDirectResponse(), by(directResponseRules))...)
	found = append(found, optional(at.field("delegate"), r.GetDelegate(), by(delegateRules))...)
	found = append(found, optional(at.field("rewrite"), r.GetRewrite(), by(rewriteRules))...)
	found = append(found, optional(at.field("retries"), r.GetRetries(), by(retryRules))...)
	found = append(found, optional(at.field("fault"), r.GetFault(), fault)...)
	found = append(found, optional(at.field("mirror"), r.GetMirror(), destination)...)
	found = append(found, each(at.field("mirrors"), r.GetMirrors(), func(at path, m *api.HTTPMirrorPolicy) []Problem {
		found := optional(at.field("destination"), m.GetDestination(), destination)
		return append(found, invalid(at.field("percentage.value"), percent(m.GetPercentage()))...)
	})...)
	found = append(found, optional(at.field("corsPolicy"), r.GetCorsPolicy(), cors)...)
	return append(found, optional(at.field("headers"), r.GetHeaders(), headers)...)
}

// leastPercentage is the smallest share of which proxies take note.
const leastPercentage = 0.0001

// faultPercent is the percentage of a fault.
func faultPercent(p *api.Percent) string {
	return either(percent(p), when(p.GetValue() > 0 && p.GetValue() < leastPercentage,
		"%v is too little to ever happen: write 0, or at least %v", p.GetValue(), leastPercentage))
}

func percent(p *api.Percent) string {
	return when(p.GetValue() < 0 || p.GetValue() > 100, "%v is not a percentage: write 0 to 100", p.GetValue())
}

var redirectRules = []rule[*api.HTTPRedirect]{
	{"", schema.Required, func(r *api.HTTPRedirect) string {
		return when(r.GetUri() == "" && r.GetAuthority() == "" && r.GetScheme() == "" && r.GetRedirectPort() == nil,
			"the redirect changes nothing: write uri, authority, scheme, port or derivePort")
	}},
	{"redirectCode", schema.Invalid, func(r *api.HTTPRedirect) string {
		code := r.GetRedirectCode()
		return when(code != 0 && (code < 300 || code > 399), "%d is not a redirect: write 301, 302, 303, 307 or 308", code)
	}},
	{"scheme", schema.NotSupported, func(r *api.HTTPRedirect) string {
		return when(r.GetScheme() != "" && r.GetScheme() != "http" && r.GetScheme() != "https",
			"%q is not a scheme: write http or https", r.GetScheme())
	}},
	{"port", schema.Invalid, func(r *api.HTTPRedirect) string { return optionalPort(r.GetPort()) }},
}

var directResponseRules = []rule[*api.HTTPDirectResponse]{
	{"status", schema.Invalid, func(r *api.HTTPDirectResponse) string { return httpStatus(int64(r.GetStatus())) }},
	{"body", schema.TooLong, func(r *api.HTTPDirectResponse) string {
		size := len(r.GetBody().GetString_()) + len(r.GetBody().GetBytes())
		return when(size > maxBody, "the body has %d bytes: at most %d are sent", size, maxBody)
	}},
}

func httpStatus(status int64) string {
	return when(status < 200 || status > 599, "%d is not the status of an answer: write 200 to 599", status)
}

var delegateRules = []rule[*api.Delegate]{
	{"name", schema.Required, func(d *api.Delegate) string { return when(d.GetName() == "", "name a VirtualService") }},
}

var rewriteRules = []rule[*api.HTTPRewrite]{
	{"", schema.Required, func(r *api.HTTPRewrite) string {
		return when(r.GetUri() == "" && r.GetAuthority() == "" && r.GetUriRegexRewrite() == nil,
			"nothing is rewritten: write uri, uriRegexRewrite or authority")
	}},
	{"uriRegexRewrite", schema.Forbidden, func(r *api.HTTPRewrite) string {
		return when(r.GetUri() != "" && r.GetUriRegexRewrite() != nil, "uri rewrites the path, too: remove one of the two")
	}},
	{"uriRegexRewrite", schema.Required, func(r *api.HTTPRewrite) string {
		regex := r.GetUriRegexRewrite()
		return when(regex != nil && (regex.GetMatch() == "" || regex.GetRewrite() == ""), "write both match and rewrite")
	}},
	{"uriRegexRewrite.match", schema.Invalid, func(r *api.HTTPRewrite) string {
		return regularExpression(r.GetUriRegexRewrite().GetMatch())
	}},
}

// retryConditions are what retryOn may name besides status codes of HTTP.
var retryConditions = setOf("5xx gateway-error reset reset-before-request connect-failure envoy-ratelimited retriable-4xx refused-stream " +
	"retriable-status-codes retriable-headers http3-post-connect-failure cancelled deadline-exceeded internal resource-exhausted unavailable")

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

var retryRules = []rule[*api.HTTPRetry]{
	{"attempts", schema.Invalid, func(r *api.HTTPRetry) string {
		return when(r.GetAttempts() < 0, "%d is negative: write 0 for no retries", r.GetAttempts())
	}},
	{"attempts", schema.Required, func(r *api.HTTPRetry) string {
		more := r.GetPerTryTimeout() != nil || r.GetRetryOn() != "" || r.GetRetryRemoteLocalities() != nil
		return when(r.GetAttempts() == 0 && more, "without attempts there are no retries: write attempts, or remove the other fields")
	}},
	{"perTryTimeout", schema.Invalid, func(r *api.HTTPRetry) string { return wholeMilliseconds(r.GetPerTryTimeout()) }},
	{"retryOn", schema.NotSupported, func(r *api.HTTPRetry) string { return retryOn(r.GetRetryOn()) }},
}

func retryOn(text string) string {
	if text == "" {
		return ""
	}
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		status, err := strconv.Atoi(name)
		if !retryConditions[name] && (err != nil || status < 100 || status > 599) {
			return when(true, "%q is not a condition: write conditions of Envoy such as 5xx, reset, connect-failure, unavailable, or status codes",
				name)
		}
	}
	return ""
}

func fault(at path, f *api.HTTPFaultInjection) []Problem {
	found := problem(at, schema.Required, when(f.GetDelay() == nil && f.GetAbort() == nil, "there is no fault: write delay or abort"))
	found = append(found, optional(at.field("delay"), f.GetDelay(), by(delayRules))...)
	return append(found, optional(at.field("abort"), f.GetAbort(), by(abortRules))...)
}

var delayRules = []rule[*api.HTTPFaultInjection_Delay]{
	{"percentage.value", schema.Invalid, func(d *api.HTTPFaultInjection_Delay) string { return faultPercent(d.GetPercentage()) }},
	{"fixedDelay", schema.Invalid, func(d *api.HTTPFaultInjection_Delay) string {
		delay := d.GetFixedDelay()
		return either(when(delay != nil && delay.AsDuration() < 1e6, "%s is too short: write at least 1ms", delay.AsDuration()),
			wholeMilliseconds(delay))
	}},
	{"exponentialDelay", schema.NotSupported, func(d *api.HTTPFaultInjection_Delay) string {
		return when(d.GetExponentialDelay() != nil, "proxies do not delay so: write fixedDelay")
	}},
}

// grpcStatuses are the names of the statuses of gRPC.
var grpcStatuses = setOf("OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED " +
	"FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED")

var abortRules = []rule[*api.HTTPFaultInjection_Abort]{
	{"", schema.Required, func(a *api.HTTPFaultInjection_Abort) string {
		return when(a.GetErrorType() == nil, "say how requests are aborted: write httpStatus or grpcStatus")
	}},
	{"percentage.value", schema.Invalid, func(a *api.HTTPFaultInjection_Abort) string { return faultPercent(a.GetPercentage()) }},
	{"httpStatus", schema.Invalid, func(a *api.HTTPFaultInjection_Abort) string {
		_, is := a.GetErrorType().(*api.HTTPFaultInjection_Abort_HttpStatus)
		if !is {
			return ""
		}
		return httpStatus(int64(a.GetHttpStatus()))
	}},
	{"grpcStatus", schema.NotSupported, func(a *api.HTTPFaultInjection_Abort) string {
		_, is := a.GetErrorType().(*api.HTTPFaultInjection_Abort_GrpcStatus)
		return when(is && !grpcStatuses[a.GetGrpcStatus()], "%q is not a status of gRPC: write a name such as UNAVAILABLE", a.GetGrpcStatus())
	}},
	{"http2Error", schema.NotSupported, func(a *api.HTTPFaultInjection_Abort) string {
		_, is := a.GetErrorType().(*api.HTTPFaultInjection_Abort_Http2Error)
		return when(is, "proxies do not abort so: write httpStatus or grpcStatus")
	}},
}
