package resource

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// NewRoutes is a route configuration that may name clusters that do not exist yet.
func NewRoutes(name string, hosts []*routev3.VirtualHost) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{
		Name: name, VirtualHosts: hosts, ValidateClusters: wrapperspb.Bool(false),
		MaxDirectResponseBodySizeBytes: wrapperspb.UInt32(MaxDirectBody),
	}
}

// Everything is a virtual host with one route for what has no other host.
func Everything(name string, route *routev3.Route) *routev3.VirtualHost {
	return &routev3.VirtualHost{Name: name, Domains: []string{"*"}, Routes: []*routev3.Route{route}}
}

// DefaultRoute is the name of routes that no object makes, as with Istio.
const DefaultRoute = "default"

// ForwardTo sends every request to the cluster, without a time limit but that of gRPC calls.
func ForwardTo(cluster string) *routev3.Route {
	action := &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}}
	LimitTime(action, nil)
	return &routev3.Route{Name: DefaultRoute, Match: AnyPath(), Action: &routev3.Route_Route{Route: action}}
}

// LimitTime has requests take at most that long; nil or 0: as long as they like. A gRPC call ends after the time that
// its caller has for it (grpc-timeout), if that is less.
func LimitTime(action *routev3.RouteAction, limit *durationpb.Duration) {
	if limit.AsDuration() == 0 {
		action.Timeout = durationpb.New(0)
		action.MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{GrpcTimeoutHeaderMax: durationpb.New(0)} // 0: whatever it says
		return
	}
	action.Timeout = limit
	action.MaxGrpcTimeout = limit //nolint:staticcheck // Envoy ignores the time limit of a route beside what replaces it
}

// AnyPath matches every request.
func AnyPath() *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
}

// Refuse answers every request itself.
func Refuse(status uint32, why string) *routev3.Route_DirectResponse {
	return &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: status, Body: TextSource(why + "\n")}}
}

// MaxDirectBody is how long the body of a direct response may be, in bytes.
const MaxDirectBody = 1 << 20
