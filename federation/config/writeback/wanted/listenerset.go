package wanted

import (
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
)

// ofListenerSet is the status of a ListenerSet of a Gateway that the hub serves.
func ofListenerSet(m Mesh, o Object) *Status {
	status, known := m.Gateways(o.Key)
	if !known || len(status.Conditions) == 0 || o.Hidden != "" {
		return nil
	}
	parent, _ := m.Gateways(parentOf(m.Read, o.Key))
	s := listening(m, o, status, ofProxies(m, madeOf(m.Read, o.Key, parent.Made)))
	s.Conditions = noted(s.Conditions, o, status)
	return s
}

// madeOf are those that were made of the ListenerSet of what was made of its Gateway.
func madeOf(r *federation.Reader, set federation.ObjectKey, made []federation.ObjectKey) (own []federation.ObjectKey) {
	for _, key := range made {
		if object, exists := r.Object(key); exists && object.Origin.Key == set {
			own = append(own, key)
		}
	}
	return own
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
