package wanted

import (
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"
	multicluster "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
	"isthmus.dev/isthmus/federation/config/kind"
)

// row is a kind whose status is written.
type row struct {
	// status is what the hub says about an object. Nil means that it has nothing to say, and
	// that nothing of its own may stay.
	status func(Mesh, Object) *Status
	// refused is the same about an object that the hub does not use as it is; nil: status does.
	refused   func(Mesh, Object) *Status
	fields    []field  // of the status that are the hub's
	own       []string // the types of conditions of which only the hub's may be
	unclaimed []string // those that an object has that no controller has claimed
}

// rows are the kinds. Those of Ingresses have their own computation (ForIngress).
var rows = allRows()

func allRows() map[federation.Kind]row {
	all := map[federation.Kind]row{
		federation.GatewayAPI.GatewayClass: {
			ofClass, refusedClass,
			[]field{conditionsField},
			gatewayTypes,
			[]string{accepted},
		},
		federation.GatewayAPI.Gateway: {ofGateway, refusedGateway, []field{
			conditionsField, listenersField, setsField,
			{"addresses", merging.addresses},
		}, gatewayTypes, []string{accepted, programmed}},
		federation.GatewayAPI.ListenerSet: {
			ofListenerSet, refusedListenerSet,
			[]field{conditionsField, listenersField},
			gatewayTypes,
			[]string{accepted, programmed},
		},
		federation.GatewayAPI.BackendTLSPolicy: {ofRoute, refusedPolicy, []field{{"ancestors", merging.ancestors}}, gatewayTypes, nil},
		federation.ServiceExportKind:           {ofExport, refusedExport, []field{conditionsField}, exportTypes, nil},
		federation.IngressKind:                 {fields: []field{{"loadBalancer", merging.loadBalancer}}},
	}
	for _, kind := range gatewayapi.Routes() {
		all[kind] = row{ofRoute, refusedRoute, routeFields, gatewayTypes, nil}
	}
	for _, r := range kind.All() {
		if strings.HasSuffix(r.Group, ".istio.io") {
			all[r.Kind] = row{ofIstio, nil, istioFields, []string{reconciled, analyzed}, nil}
		}
	}
	return all
}

var (
	conditionsField = field{"conditions", func(m merging, now any) any { return m.conditions(list(now), m.want.Conditions) }}
	listenersField  = field{"listeners", merging.listeners}
	setsField       = field{"attachedListenerSets", merging.sets}
	istioFields     = []field{conditionsField, {"validationMessages", merging.messages}, {"observedGeneration", merging.generation}}
	routeFields     = []field{{"parents", merging.parents}}
	gatewayTypes    = []string{accepted, programmed, conflicted, resolved, string(gateway.GatewayConditionInsecureFrontendValidationMode)}
	exportTypes     = []string{
		string(multicluster.ServiceExportConditionValid), string(multicluster.ServiceExportConditionReady),
		string(multicluster.ServiceExportConditionConflict),
	}
)

// Writes reports whether the status of objects of the kind is written.
func Writes(kind federation.Kind) bool { return rows[kind].status != nil }
