package get

import (
	"fmt"
	"slices"
	"strings"

	"isthmus.dev/isthmus/internal/cli/output"
)

// column is a column of a kind: a head and the path of the value within the
// object, where [] stands for every item of a list.
type column struct{ head, path string }

// columnsOf are the columns in which a kind differs from others.
func columnsOf(group, kind string) []column {
	switch group + "/" + kind {
	case "networking.istio.io/VirtualService":
		return []column{{"GATEWAYS", "spec.gateways"}, {"HOSTS", "spec.hosts"}}
	case "networking.istio.io/DestinationRule":
		return []column{{"HOST", "spec.host"}}
	case "networking.istio.io/ServiceEntry":
		return []column{{"HOSTS", "spec.hosts"}, {"LOCATION", "spec.location"}, {"RESOLUTION", "spec.resolution"}}
	case "networking.istio.io/WorkloadEntry":
		return []column{{"ADDRESS", "spec.address"}, {"NETWORK", "spec.network"}}
	case "networking.istio.io/Gateway":
		return []column{{"HOSTS", "spec.servers[].hosts"}}
	case "gateway.networking.k8s.io/Gateway":
		return []column{{"CLASS", "spec.gatewayClassName"}, {"LISTENERS", "spec.listeners[].name"}}
	case "gateway.networking.k8s.io/HTTPRoute", "gateway.networking.k8s.io/GRPCRoute", "gateway.networking.k8s.io/TLSRoute":
		return []column{{"HOSTNAMES", "spec.hostnames"}, {"PARENTS", "spec.parentRefs[].name"}}
	case "security.istio.io/AuthorizationPolicy":
		return []column{{"ACTION", "spec.action"}}
	case "security.istio.io/PeerAuthentication":
		return []column{{"MODE", "spec.mtls.mode"}}
	case "isthmus.dev/Cluster":
		return []column{{"PROVIDER", "spec.provider"}, {"NETWORK", "spec.network"}, {"PRECEDENCE", "spec.precedence"}}
	}
	return nil
}

// cellOf is what a path leads to, lists joined by commas.
func cellOf(value any, path string) string {
	texts := leaves(value, strings.Split(path, "."))
	const most = 3
	if len(texts) > most {
		texts = append(slices.Clip(texts[:most]), fmt.Sprintf("+%d", len(texts)-most))
	}
	return output.OrDash(strings.Join(texts, ","))
}

func leaves(value any, steps []string) []string {
	if list, ok := value.([]any); ok {
		var all []string
		for _, one := range list {
			all = append(all, leaves(one, steps)...)
		}
		return all
	}
	if len(steps) == 0 {
		if value == nil {
			return nil
		}
		return []string{fmt.Sprint(value)}
	}
	object, _ := value.(map[string]any)
	return leaves(object[strings.TrimSuffix(steps[0], "[]")], steps[1:])
}
