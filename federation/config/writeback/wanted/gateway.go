package wanted

import (
	"slices"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
)

const (
	accepted   = string(gateway.GatewayConditionAccepted)
	programmed = string(gateway.GatewayConditionProgrammed)
	conflicted = string(gateway.ListenerConditionConflicted)
	resolved   = string(gateway.RouteConditionResolvedRefs)
)

func ofClass(m Mesh, o Object) *Status {
	class, exists := m.Read.Object(o.Key)
	if !exists || o.Hidden != "" {
		return nil
	}
	if _, ours := gatewayapi.Controls(class); !ours {
		return nil
	}
	status, _ := m.Gateways(o.Key)
	s := &Status{Conditions: merged(status.Conditions)}
	for i, c := range s.Conditions {
		if c.Type == accepted && c.Status == yes {
			s.Conditions[i].Message = "the hub serves Gateways of this class"
		}
	}
	s.Conditions = noted(s.Conditions, o, status)
	return s
}

func ofGateway(m Mesh, o Object) *Status {
	status, known := m.Gateways(o.Key)
	if !known || status.Controller == "" || o.Hidden != "" {
		return nil
	}
	s := listening(m, o, status, ofProxies(m, status.Made))
	s.Conditions = noted(s.Conditions, o, status)
	s.Conditions = withoutCertificate(s.Conditions, missingSecrets(m, o.Cluster, status.Secrets))
	s.Sets = status.Sets
	s.Addresses = addresses(m.Read, o)
	return s
}

// listening is the status of what has listeners.
func listening(m Mesh, o Object, status gatewayapi.Status, delivered Condition) *Status {
	s := &Status{Conditions: withDelivery(merged(status.Conditions), delivered), Listeners: []Listener{}}
	var faulty unusable
	for i, l := range status.Listeners {
		kinds := []federation.Kind{}
		for _, name := range l.Kinds {
			kinds = append(kinds, federation.Kind{Group: gateway.GroupName, Name: name})
		}
		conditions := withDelivery(merged(l.Conditions), delivered)
		if missing := missingSecrets(m, o.Cluster, l.Secrets); missing != "" {
			faulty.secrets++
			conditions = withoutSecret(conditions, missing)
		} else if reserved := reservedPort(m, o.Key, i); reserved != "" {
			faulty.ports++
			conditions = withoutPort(conditions, reserved)
		}
		s.Listeners = append(s.Listeners, Listener{
			Name: l.Name, Attached: l.Attached, Kinds: kinds,
			Conditions: append(conditions, conflict(l.Conditions)),
		})
	}
	s.Conditions = withUnusable(s.Conditions, faulty, len(s.Listeners))
	return s
}

// conflict is the condition that says whether listeners contest a port.
func conflict(conditions []gatewayapi.Condition) Condition {
	for _, c := range conditions {
		switch gateway.ListenerConditionReason(c.Reason) {
		case gateway.ListenerReasonProtocolConflict, gateway.ListenerReasonHostnameConflict:
			return Condition{Type: conflicted, Status: yes, Reason: c.Reason, Message: c.Message}
		}
	}
	return Condition{Type: conflicted, Status: no, Reason: string(gateway.ListenerReasonNoConflicts)}
}

// merged has one condition of each type: of several faults, the first says what it is.
func merged(conditions []gatewayapi.Condition) (all []Condition) {
	for _, c := range conditions {
		at := slices.IndexFunc(all, func(o Condition) bool { return o.Type == c.Type })
		switch {
		case at < 0:
			all = append(all, Condition{Type: c.Type, Status: truth(c.Status), Reason: c.Reason, Message: sentence(c)})
		case c.Message != "":
			all[at].Message = cut(strings.TrimPrefix(all[at].Message+"; "+sentence(c), "; "))
		}
	}
	return all
}

// noted has the condition Accepted say which fields of the object have no effect.
func noted(conditions []Condition, o Object, status gatewayapi.Status) []Condition {
	notes := status.Notes()
	for _, p := range o.Unknown {
		notes = append(notes, gatewayapi.Condition{Field: p.Field, Message: p.Message})
	}
	var texts []string
	for _, note := range notes {
		if text := sentence(note); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	for i, c := range conditions {
		if c.Type == accepted && len(texts) > 0 {
			conditions[i].Message = cut(strings.TrimPrefix(c.Message+"; "+strings.Join(texts, "; "), "; "))
		}
	}
	return conditions
}

func sentence(c gatewayapi.Condition) string {
	if c.Field == "" || c.Message == "" {
		return c.Message
	}
	return c.Field + ": " + c.Message
}

// mostMessage is what the API allows for the message of a condition, in bytes.
const mostMessage = 32768

func cut(message string) string { return message[:min(len(message), mostMessage)] }

// ofProxies is whether the proxies of a Gateway have what was made of it.
func ofProxies(m Mesh, made []federation.ObjectKey) Condition {
	d, _ := m.Delivered(made...)
	c := Condition{Type: programmed, Status: no}
	switch {
	case d.Refused > 0:
		c.Reason, c.Message = string(gateway.GatewayReasonInvalid), "a proxy rejected what was made of the Gateway; isthmus describe names it"
	case d.Waiting > 0:
		c.Reason, c.Message, c.Pending = string(gateway.GatewayReasonPending), "proxies have not accepted the Gateway yet", true
	case d.Accepted == 0 && m.OtherHubs == 0:
		c.Reason, c.Message = string(gateway.GatewayReasonNoResources),
			"no proxy of the Gateway is connected to the hub; deploy proxies with the label "+federation.GatewayLabel
	default:
		c.Status, c.Reason = yes, programmed
	}
	return c
}

// withDelivery has Programmed say what proxies have, where what was made is valid.
func withDelivery(conditions []Condition, delivered Condition) []Condition {
	for i, c := range conditions {
		if c.Type == programmed && c.Status == yes {
			conditions[i] = delivered
		}
	}
	return conditions
}

// mostAddresses is what the API allows for a Gateway.
const mostAddresses = 16

// addresses are those of the Services of the Gateway's proxies: NAME, and NAME-CLASS as
// GEP-1762 has it.
func addresses(r *federation.Reader, o Object) []Address {
	found := []Address{}
	names := []string{o.Key.Name}
	if object, exists := r.Object(o.Key); exists {
		if spec, is := object.Spec.(*gateway.GatewaySpec); is {
			names = append(names, o.Key.Name+"-"+string(spec.GatewayClassName))
		}
	}
	for _, name := range names {
		key, shard := serviceOf(r, o.Cluster, o.Key.Namespace, name)
		if shard == nil || !isFor(shard, o.Key.Name) {
			continue
		}
		at := external(shard)
		if len(at) == 0 {
			at = []Address{{Host: string(key.Hostname)}}
		}
		found = append(found, at...)
	}
	return found[:min(len(found), mostAddresses)]
}

// isFor reports whether a Service or one of its endpoints has the label of the Gateway.
func isFor(shard *federation.Shard, name string) bool {
	return shard.Labels[federation.GatewayLabel] == name || slices.ContainsFunc(shard.Endpoints, func(e federation.Endpoint) bool {
		return e.Labels[federation.GatewayLabel] == name
	})
}

// serviceOf is what a cluster says about its Service; nil: there is none.
func serviceOf(r *federation.Reader, cluster federation.ClusterID, namespace, name string) (federation.ServiceKey, *federation.Shard) {
	key := federation.ServiceKey{Hostname: federation.ResolveHost(name, namespace), Namespace: namespace}
	service, exists := r.Endpoints(key)
	if !exists {
		return key, nil
	}
	return key, service.Shards.Of(federation.ShardKey{Provider: federation.Kubernetes, Cluster: cluster})
}

// external are the addresses of a Service from outside.
func external(shard *federation.Shard) []Address {
	found := []Address{}
	for _, a := range shard.External {
		if ip, is := a.IP(); is {
			found = append(found, Address{IP: ip.String()})
		} else if host, is := a.Host(); is {
			found = append(found, Address{Host: host})
		}
	}
	return found
}

// ofRoute is the status of a route for each of its parents, and of a BackendTLSPolicy for each
// Gateway with routes to its targets.
func ofRoute(m Mesh, o Object) *Status {
	status, known := m.Gateways(o.Key)
	if !known || len(status.Parents) == 0 || o.Hidden != "" {
		return nil
	}
	s := &Status{Parents: []Parent{}}
	for _, p := range status.Parents {
		s.Parents = append(s.Parents, Parent{Ref: reference(p.Ref), Controller: p.Controller, Conditions: noted(merged(p.Conditions), o, status)})
	}
	return s
}

// reference is a reference as the route has it.
func reference(ref gateway.ParentReference) map[string]any {
	fields := map[string]any{"group": gateway.GroupName, "kind": federation.GatewayAPI.Gateway.Name, "name": string(ref.Name)}
	if ref.Group != nil {
		fields["group"] = string(*ref.Group)
	}
	if ref.Kind != nil {
		fields["kind"] = string(*ref.Kind)
	}
	if ref.Namespace != nil {
		fields["namespace"] = string(*ref.Namespace)
	}
	if ref.SectionName != nil {
		fields["sectionName"] = string(*ref.SectionName)
	}
	if ref.Port != nil {
		fields["port"] = int64(*ref.Port)
	}
	return fields
}
