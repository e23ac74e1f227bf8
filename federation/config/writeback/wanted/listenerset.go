package wanted

import (
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
)

// ofListenerSet is the status of a ListenerSet of a Gateway that the hub serves. What was made
// of it was made of that Gateway.
func ofListenerSet(m Mesh, o Object) *Status {
	status, known := m.Gateways(o.Key)
	if !known || len(status.Conditions) == 0 || o.Hidden != "" {
		return nil
	}
	parent, _ := m.Gateways(parentOf(m.Read, o.Key))
	return listening(m, o, status, ofProxies(m, parent.Made))
}

// parentOf is the Gateway that a ListenerSet names.
func parentOf(r *federation.Reader, set federation.ObjectKey) federation.ObjectKey {
	object, exists := r.Object(set)
	if !exists {
		return federation.ObjectKey{}
	}
	spec, _ := object.Spec.(*gateway.ListenerSetSpec)
	if spec == nil {
		return federation.ObjectKey{}
	}
	return gatewayOf(r, set, spec.ParentRef.Namespace, spec.ParentRef.Name)
}

// gatewayOf is the Gateway that a reference means. It is read, so that its changes are noted.
func gatewayOf(r *federation.Reader, in federation.ObjectKey, namespace *gateway.Namespace, name gateway.ObjectName) federation.ObjectKey {
	key := gatewayapi.GatewayNamed(in, namespace, name)
	r.Object(key)
	return key
}

// ofUDPRoute is the status of a UDPRoute: no listener of the hub takes datagrams.
func ofUDPRoute(m Mesh, o Object) *Status {
	object, exists := m.Read.Object(o.Key)
	if !exists || o.Hidden != "" {
		return nil
	}
	spec, _ := object.Spec.(*gateway.UDPRouteSpec)
	if spec == nil {
		return nil
	}
	s := &Status{Parents: []Parent{}}
	for _, ref := range spec.ParentRefs {
		if ref.Group != nil && *ref.Group != gateway.GroupName || ref.Kind != nil && *ref.Kind != "Gateway" {
			continue
		}
		status, known := m.Gateways(gatewayOf(m.Read, o.Key, ref.Namespace, ref.Name))
		if known && status.Controller != "" {
			s.Parents = append(s.Parents, Parent{Ref: reference(ref), Controller: status.Controller, Conditions: []Condition{{
				Type: accepted, Status: no, Reason: string(gateway.RouteReasonNotAllowedByListeners),
				Message: "gateways of the hub take no datagrams: the UDPRoute has no effect",
			}}})
		}
	}
	if len(s.Parents) == 0 {
		return nil
	}
	return s
}
