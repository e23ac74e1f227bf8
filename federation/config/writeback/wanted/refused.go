package wanted

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"
	multicluster "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
)

// refusal is the status of an object that the hub does not use as it is (ADR 227).
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

// refusedPolicy is for the Gateways with routes to the targets that the object names, or for those of its last valid form if
// the targets cannot be read. Of an object without such a form it says, too, what is wrong with its references.
func refusedPolicy(m Mesh, o Object) *Status {
	var targets []gateway.LocalPolicyTargetReferenceWithSectionName
	if !decode(o.Spec["targetRefs"], &targets) {
		return refusedAt(m, o, lastParents(m, o), string(gateway.PolicyReasonInvalid))
	}
	read := m.Read.For(o.Key.Cluster)
	parents := gatewayapi.Ancestors(read, o.Key, targets)
	var references []Condition
	var authorities []gateway.LocalObjectReference
	validation, _ := o.Spec["validation"].(map[string]any)
	_, exists := read.Object(o.Key)
	if !exists && decode(validation["caCertificateRefs"], &authorities) {
		references = merged(gatewayapi.Authorities(read, o.Key, authorities))
	}
	m.Read.For(federation.AnyCluster)
	s := refusedAt(m, o, parents, string(gateway.PolicyReasonInvalid))
	if s != nil {
		for i, p := range s.Parents {
			s.Parents[i].Conditions = slices.Concat(p.Conditions, references)
		}
	}
	return s
}

// refusedExport says so with the conditions of KEP-1645: without a valid form, nothing is exported.
func refusedExport(m Mesh, o Object) *Status {
	s := refusal(m, o, "Invalid", string(multicluster.ServiceExportConditionValid))
	if _, exists := m.Read.Object(o.Key); !exists {
		failed := s.Conditions[0]
		failed.Type, failed.Reason = string(multicluster.ServiceExportConditionReady), string(multicluster.ServiceExportReasonFailed)
		s.Conditions = append(s.Conditions, failed)
	}
	return s
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
