package resource

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/federation"
)

// IstioMetadataKey is the key of the metadata that Istio's tools and filters read.
const IstioMetadataKey = "istio"

// Keys of that metadata.
const (
	configKey   = "config"
	servicesKey = "services"
)

// kindsInPaths are kinds as the paths of Istio's metadata spell them.
var kindsInPaths = map[string]string{
	federation.DestinationRuleKind.Name: "destination-rule", federation.VirtualServiceKind.Name: "virtual-service",
}

// IstioMetadata says which object decides about a resource, and to which services it leads;
// nil where nothing is to be said. The object is nil where none does.
func IstioMetadata(decides *federation.Object, services ...federation.ServiceKey) *corev3.Metadata {
	fields := map[string]*structpb.Value{}
	if decides != nil {
		fields[configKey] = structpb.NewStringValue(configPath(decides.Key))
	}
	if len(services) > 0 {
		fields[servicesKey] = structpb.NewListValue(serviceList(services))
	}
	if len(fields) == 0 {
		return nil
	}
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{IstioMetadataKey: {Fields: fields}}}
}

// configPath is where the object is in the API of Kubernetes, with the kind as Istio spells
// it there.
func configPath(key federation.ObjectKey) string {
	return strings.Join([]string{"/apis", key.Group, "v1/namespaces", key.Namespace, kindsInPaths[key.Kind], key.Name}, "/")
}

func serviceList(services []federation.ServiceKey) *structpb.ListValue {
	all := &structpb.ListValue{}
	for _, s := range services {
		all.Values = append(all.Values, structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			"host":      structpb.NewStringValue(string(s.Hostname)),
			"name":      structpb.NewStringValue(shortName(s)),
			"namespace": structpb.NewStringValue(s.Namespace),
		}}))
	}
	return all
}

// shortName is the name of a service in its namespace. Services that are not Kubernetes', such as those of ServiceEntries, have
// none, and are called by their hostname, as with Istio.
func shortName(s federation.ServiceKey) string {
	host := string(s.Hostname)
	name, rest, _ := strings.Cut(host, ".")
	if strings.HasPrefix(rest, s.Namespace+".svc.") {
		return name
	}
	return host
}
