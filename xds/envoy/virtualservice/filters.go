package virtualservice

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	commonfaultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/fault/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// AddFilters sets what filters in front of the router do for the route.
func AddFilters(route *routev3.Route, in *networking.HTTPRoute) error {
	if in.GetFault() != nil {
		fault, err := faultOf(in.GetFault())
		if err != nil {
			return fmt.Errorf(".fault%w", err)
		}
		perFilter(route, resource.FaultFilter, fault)
	}
	if in.GetCorsPolicy() != nil {
		cors, err := corsOf(in.GetCorsPolicy())
		if err != nil {
			return fmt.Errorf(".corsPolicy%w", err)
		}
		perFilter(route, resource.CORSFilter, cors)
	}
	return nil
}

func perFilter(route *routev3.Route, name string, config proto.Message) {
	if route.TypedPerFilterConfig == nil {
		route.TypedPerFilterConfig = map[string]*anypb.Any{}
	}
	route.TypedPerFilterConfig[name] = resource.Any(config)
}

func faultOf(in *networking.HTTPFaultInjection) (*faultv3.HTTPFault, error) {
	out := &faultv3.HTTPFault{}
	if d := in.GetDelay(); d != nil {
		if d.GetFixedDelay() == nil {
			return nil, fmt.Errorf(".delay: only fixedDelay is compiled")
		}
		percentage := Fraction(d.GetPercentage().GetValue())
		if d.GetPercentage() == nil {
			percentage = Fraction(float64(d.GetPercent()))
		}
		out.Delay = &commonfaultv3.FaultDelay{
			FaultDelaySecifier: &commonfaultv3.FaultDelay_FixedDelay{FixedDelay: d.GetFixedDelay()}, Percentage: percentage,
		}
	}
	a := in.GetAbort()
	if a == nil {
		return out, nil
	}
	out.Abort = &faultv3.FaultAbort{Percentage: Fraction(a.GetPercentage().GetValue())}
	switch kind := a.GetErrorType().(type) {
	case *networking.HTTPFaultInjection_Abort_HttpStatus:
		out.Abort.ErrorType = &faultv3.FaultAbort_HttpStatus{HttpStatus: uint32(max(kind.HttpStatus, 0))}
	case *networking.HTTPFaultInjection_Abort_GrpcStatus:
		code, err := grpcCode(kind.GrpcStatus)
		out.Abort.ErrorType = &faultv3.FaultAbort_GrpcStatus{GrpcStatus: code}
		return out, err
	default:
		return nil, fmt.Errorf(".abort: only httpStatus and grpcStatus are compiled")
	}
	return out, nil
}

// grpcStatuses are the statuses of gRPC in the order of their numbers.
var grpcStatuses = []string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
	"FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

// grpcCode reads a status of gRPC by name or number.
func grpcCode(text string) (uint32, error) {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return uint32(n), nil
	}
	at := slices.Index(grpcStatuses, text)
	if at < 0 {
		return 0, fmt.Errorf(".abort.grpcStatus: gRPC has no status %q", text)
	}
	return uint32(at), nil
}

// Fraction writes a percentage to the ten thousandth.
func Fraction(percentage float64) *typev3.FractionalPercent {
	return &typev3.FractionalPercent{
		Numerator: uint32(min(max(percentage, 0), 100)*10000 + 0.5), Denominator: typev3.FractionalPercent_MILLION,
	}
}

func corsOf(in *networking.CorsPolicy) (*corsv3.CorsPolicy, error) {
	out := &corsv3.CorsPolicy{
		AllowMethods: strings.Join(in.GetAllowMethods(), ","), AllowHeaders: strings.Join(in.GetAllowHeaders(), ","),
		ExposeHeaders: strings.Join(in.GetExposeHeaders(), ","), AllowCredentials: in.GetAllowCredentials(),
		FilterEnabled: &corev3.RuntimeFractionalPercent{DefaultValue: Fraction(100)},
	}
	for i, origin := range in.GetAllowOrigins() {
		m, err := stringMatcher(origin)
		if err != nil {
			return nil, fmt.Errorf(".allowOrigins[%d]: %w", i, err)
		}
		out.AllowOriginStringMatch = append(out.AllowOriginStringMatch, m)
	}
	for _, origin := range in.GetAllowOrigin() {
		out.AllowOriginStringMatch = append(out.AllowOriginStringMatch, oldOrigin(origin))
	}
	if in.GetMaxAge() != nil {
		out.MaxAge = strconv.FormatInt(int64(in.GetMaxAge().AsDuration().Seconds()), 10)
	}
	switch in.GetUnmatchedPreflights() {
	case networking.CorsPolicy_FORWARD:
		out.ForwardNotMatchingPreflights = wrapperspb.Bool(true)
	case networking.CorsPolicy_IGNORE:
		out.ForwardNotMatchingPreflights = wrapperspb.Bool(false)
	}
	return out, nil
}

func oldOrigin(origin string) *matcherv3.StringMatcher {
	if origin == "*" {
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: ".*"}}}
	}
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: origin}}
}
