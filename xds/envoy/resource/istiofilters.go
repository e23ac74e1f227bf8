package resource

import (
	xdsv1 "github.com/cncf/xds/go/udpa/type/v1"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// The names of Istio's filters, as Istio gives them.
const (
	StatsFilter    = "istio.stats"
	ExchangeFilter = "istio.metadata_exchange"
)

// ExchangeProtocol is what connections between proxies offer by ALPN that tell each other who they are.
const ExchangeProtocol = "istio-peer-exchange"

// The types of their configurations.
const (
	typePrefix        = "type.googleapis.com/"
	exchangeType      = typePrefix + "envoy.tcp.metadataexchange.config.MetadataExchange"
	requestPeersTypes = typePrefix + "io.istio.http.peer_metadata.Config"
)

// Exchange is the configuration of the filter by which the proxies at both ends of a connection tell each other who they
// are.
func Exchange() *anypb.Any {
	return typedStruct(exchangeType, map[string]*structpb.Value{
		"protocol": structpb.NewStringValue(ExchangeProtocol), "enable_discovery": structpb.NewBoolValue(true),
	})
}

// RequestPeers is the configuration of the filter by which proxies tell each other by headers who they are: those in
// front of the workload and those behind it.
func RequestPeers(inbound bool) *anypb.Any {
	side := "upstream"
	if inbound {
		side = "downstream"
	}
	byHeaders := method("istio_headers")
	return typedStruct(requestPeersTypes, map[string]*structpb.Value{
		side + "_discovery":   structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{byHeaders, method("workload_discovery")}}),
		side + "_propagation": structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{byHeaders}}),
	})
}

func method(name string) *structpb.Value {
	return structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{name: structpb.NewStructValue(&structpb.Struct{})}})
}

// typedStruct is a message of a type that only the proxy knows.
func typedStruct(url string, fields map[string]*structpb.Value) *anypb.Any {
	return Any(&xdsv1.TypedStruct{TypeUrl: url, Value: &structpb.Struct{Fields: fields}})
}
