package wanted

import (
	"encoding/json"
	"fmt"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
)

// refusal is the status of an object of the Gateway API that the hub does not use as it is (ADR 227).
func refusal(m Mesh, o Object, reason string, types ...string) *Status {
	s := &Status{Refused: true}
	for _, t := range types {
		s.Conditions = append(s.Conditions, Condition{Type: t, Status: no, Reason: reason, Message: faultsOf(m, o)})
	}
	return s
}

// faultsOf says why the object is not used as it is, and what is in force instead.
func faultsOf(m Mesh, o Object) string {
	var texts []string
	for _, p := range o.Invalid[:min(len(o.Invalid), mostFindings)] {
		texts = append(texts, p.String())
	}
	if more := len(o.Invalid) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("there are %d more problems", more))
	}
	fate := "the object has no effect"
	if _, exists := m.Read.Object(o.Key); exists {
		fate = "the last valid form of the object stays in force"
	}
	return cut(strings.Join(append(texts, fate), "; "))
}

func refusedClass(m Mesh, o Object) *Status {
	if name, _ := o.Spec["controllerName"].(string); !gatewayapi.IsController(name) {
		return nil
	}
	return refusal(m, o, string(gateway.GatewayReasonInvalid), accepted)
}

func refusedGateway(m Mesh, o Object) *Status {
	class, _ := o.Spec["gatewayClassName"].(string)
	if !servesClass(m.Read, o.Key.Cluster, class) {
		return nil
	}
	return refusal(m, o, string(gateway.GatewayReasonInvalid), accepted, programmed)
}

// servesClass reports whether the hub serves Gateways of the class in the cluster.
func servesClass(r *federation.Reader, in federation.ClusterID, name string) bool {
	key := federation.GatewayAPI.GatewayClass.Key("", name)
	for _, cluster := range []federation.ClusterID{in, ""} {
		key.Cluster = cluster
		if class, exists := r.Object(key); exists {
			_, ours := gatewayapi.Controls(class)
			return ours
		}
	}
	return false
}

func refusedListenerSet(m Mesh, o Object) *Status {
	var parent gateway.ParentGatewayReference
	if !decode(o.Spec["parentRef"], &parent) {
		return nil
	}
	status, _ := m.Gateways(gatewayOf(m.Read, o.Key, parent.Namespace, parent.Name))
	if status.Controller == "" {
		return nil
	}
	return refusal(m, o, string(gateway.ListenerSetReasonInvalid), accepted, programmed)
}

// refusedRoute is for the parents that the object names, or that its last valid form names if these cannot be read.
func refusedRoute(m Mesh, o Object) *Status {
	var refs []gateway.ParentReference
	if !decode(o.Spec["parentRefs"], &refs) {
		return refusedAt(m, o, lastParents(m, o), string(gateway.RouteReasonUnsupportedValue))
	}
	parents := gatewayapi.Parents(o.Key, refs, func(key federation.ObjectKey) (gatewayapi.Status, bool) {
		m.Read.Object(key) // it is looked at again when that changes
		return m.Gateways(key)
	})
	return refusedAt(m, o, parents, string(gateway.RouteReasonUnsupportedValue))
}

// refusedPolicy is for the Gateways for which its last valid form decides.
func refusedPolicy(m Mesh, o Object) *Status {
	return refusedAt(m, o, lastParents(m, o), string(gateway.PolicyReasonInvalid))
}

func lastParents(m Mesh, o Object) []gatewayapi.ParentStatus {
	status, _ := m.Gateways(o.Key)
	return status.Parents
}

// refusedAt says that none of the parents accepts the object.
func refusedAt(m Mesh, o Object, parents []gatewayapi.ParentStatus, reason string) *Status {
	if len(parents) == 0 {
		return nil
	}
	s := refusal(m, o, reason, accepted)
	for _, p := range parents {
		s.Parents = append(s.Parents, Parent{Ref: reference(p.Ref), Controller: p.Controller, Conditions: s.Conditions})
	}
	return s
}

// decode reads a part of a spec that is not valid as a whole. It reports whether that part could be read.
func decode(part, to any) bool {
	if part == nil {
		return false
	}
	text, err := json.Marshal(part)
	return err == nil && json.Unmarshal(text, to) == nil
}
