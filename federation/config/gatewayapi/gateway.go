package gatewayapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/translated"
)

// controllers are those of GatewayClasses whose Gateways the hub serves.
var controllers = []gateway.GatewayController{"isthmus.dev/gateway-controller", "istio.io/gateway-controller"}

// nameLabel is the label of the proxies of a Gateway. Its value is the Gateway's name.
const nameLabel = "gateway.networking.k8s.io/gateway-name"

const anyHost = "*"

// gatewayView is a Gateway as its routes see it.
type gatewayView struct {
	*federation.Object
	spec        *gateway.GatewaySpec
	listeners   []*listener // those of ListenerSets come after its own
	sets        []*setView
	class       string             // its controller
	certificate *clientCertificate // nil: its proxies present none
	status      Status
}

// listener is a listener of a Gateway or of a ListenerSet.
type listener struct {
	gateway.Listener
	of         federation.ObjectKey
	notes      *Status // of what it is of
	rank       int     // of what it is of: less goes before
	field      string
	host       string            // in lower case; anyHost without one
	kinds      []string          // of the routes that may attach
	namespaces namespaceSelector // of the routes that may attach
	faults     faults            // for which it does not listen
	lacks      faults            // without which it listens
	from       string            // namespace of its Secrets
	names      []string
	roots      string // the Secret with the authorities of clients
	inline     string // these authorities themselves, PEM; without any, clients need no certificate
	insecure   bool   // clients pass without a certificate that these authorities signed
	mode       string // of TLS, by an option; empty: what the authorities of clients come to
	suites     []any  // of ciphers, by an option
}

// serves reports whether the class is one of the hub's. Without a class, exists is false.
func serves(r *federation.Reader, class string) (controller gateway.GatewayController, ours, exists bool) {
	o, exists := r.Object(federation.GatewayAPI.GatewayClass.Key("", class))
	if !exists {
		return "", false, false
	}
	controller, ours = Controls(o)
	return controller, ours, true
}

// judged is the object, and a status that says nothing yet; nil: there is none, and the status is whole.
func judged(r *federation.Reader, key federation.ObjectKey) (*federation.Object, Status) {
	o, exists := r.Object(key)
	if !exists || o.Key != key {
		return nil, Status{Object: key}
	}
	return o, Status{Object: key, Digest: o.Digest}
}

// statusOfClass is the status of a GatewayClass.
func statusOfClass(r *federation.Reader, key federation.ObjectKey) Status {
	o, s := judged(r, key)
	if o == nil {
		return s
	}
	spec, _ := o.Spec.(*gateway.GatewayClassSpec)
	if _, ours := Controls(o); ours {
		var f faults
		if spec.ParametersRef != nil {
			f.add(accepted, string(gateway.GatewayClassReasonInvalidParameters), "spec.parametersRef", "%s", kind.NoClassParameters)
		}
		s.Conditions = f.conditions(accepted)
	}
	return s
}

// Controls is the controller of a GatewayClass, and whether the hub is that controller.
func Controls(class *federation.Object) (controller gateway.GatewayController, ours bool) {
	spec, _ := class.Spec.(*gateway.GatewayClassSpec)
	if spec == nil {
		return "", false
	}
	return spec.ControllerName, slices.Contains(controllers, spec.ControllerName)
}

// view reads a Gateway. It is nil if the Gateway does not exist, or another controller has it.
func view(r *federation.Reader, key federation.ObjectKey) *gatewayView {
	o, exists := r.Object(key)
	if !exists {
		return nil
	}
	spec, ok := o.Spec.(*gateway.GatewaySpec)
	if !ok {
		return nil
	}
	g := &gatewayView{Object: o, spec: spec, status: Status{Object: o.Key, Digest: o.Digest}}
	controller, ours, exists := serves(r, string(spec.GatewayClassName))
	switch {
	case !exists:
		g.status.tell(codeClass, "spec.gatewayClassName", "there is no GatewayClass %s; the Gateway has no effect",
			federation.Quote(string(spec.GatewayClassName)))
		return g
	case !ours:
		g.status.unsupported("spec.gatewayClassName", "the GatewayClass %s is of another controller, and the hub does not serve the Gateway",
			federation.Quote(string(spec.GatewayClassName)))
		return g
	}
	g.class = string(controller)
	g.readUnsupported()
	g.certificate = readClientCertificate(r, g.Key, spec)
	g.status.Secrets = g.certificate.secrets()
	for i, l := range spec.Listeners {
		g.listeners = append(g.listeners, g.listener(r, l, i, g.Key, &g.status))
	}
	g.readSets(r)
	g.findConflicts()
	return g
}

func (g *gatewayView) readUnsupported() {
	for i := range g.spec.Addresses {
		g.status.unsupported(fmt.Sprintf("spec.addresses[%d]", i), "the hub assigns no addresses; expose the proxies of the Gateway by a Service")
	}
	if g.spec.Infrastructure != nil {
		g.status.unsupported("spec.infrastructure", "the hub deploys no proxies; deploy them with the label %s: %s", nameLabel, g.Key.Name)
	}
	if g.spec.DefaultScope != "" {
		g.status.unsupported("spec.defaultScope", kind.NoDefaultGateways)
	}
}

// listener reads the i-th listener of a Gateway or ListenerSet.
func (g *gatewayView) listener(r *federation.Reader, in gateway.Listener, i int, of federation.ObjectKey, notes *Status) *listener {
	l := &listener{Listener: in, of: of, notes: notes, field: fmt.Sprintf("spec.listeners[%d]", i), host: anyHost}
	if l.Hostname != nil && *l.Hostname != "" {
		l.host = strings.ToLower(string(*l.Hostname))
	}
	l.readOptions()
	switch l.Protocol {
	case gateway.HTTPProtocolType:
		l.kinds = []string{federation.GatewayAPI.HTTPRoute.Name, federation.GatewayAPI.GRPCRoute.Name}
	case gateway.HTTPSProtocolType:
		l.kinds = []string{federation.GatewayAPI.HTTPRoute.Name, federation.GatewayAPI.GRPCRoute.Name}
		g.readTLS(r, l)
	case gateway.TLSProtocolType:
		l.kinds = []string{federation.GatewayAPI.TLSRoute.Name}
		if !l.passes() {
			l.kinds = []string{federation.GatewayAPI.TLSRoute.Name, federation.GatewayAPI.TCPRoute.Name}
			g.readTLS(r, l)
		}
	case gateway.TCPProtocolType:
		l.kinds, l.host = []string{federation.GatewayAPI.TCPRoute.Name}, anyHost
	case gateway.UDPProtocolType:
		l.kinds, l.host = []string{federation.GatewayAPI.UDPRoute.Name}, anyHost
	default:
		l.faults.add(accepted, string(gateway.ListenerReasonUnsupportedProtocol), l.field+".protocol",
			"the protocol %s is not supported yet; nothing listens", federation.Quote(string(l.Protocol)))
	}
	if len(g.Key.Name) > 63 {
		l.faults.add(accepted, string(gateway.ListenerReasonUnsupportedValue), "metadata.name",
			"the name is longer than 63 bytes, and no proxy can have the label %s with it; nothing listens", nameLabel)
	}
	if l.AllowedRoutes != nil && len(l.AllowedRoutes.Kinds) > 0 {
		l.narrowKinds()
	}
	l.namespaces.from = gateway.NamespacesFromSame
	if l.AllowedRoutes != nil && l.AllowedRoutes.Namespaces != nil {
		var why string
		l.namespaces, why = readNamespaces(r, of, l.AllowedRoutes.Namespaces.From, l.AllowedRoutes.Namespaces.Selector)
		if why != "" {
			l.notes.unsupported(l.field+".allowedRoutes.namespaces.selector", "no route attaches: %s", why)
		}
	}
	return l
}

// passes reports whether the listener does not end TLS.
func (l *listener) passes() bool {
	return l.Protocol == gateway.TLSProtocolType && l.TLS != nil && l.TLS.Mode != nil && *l.TLS.Mode == gateway.TLSModePassthrough
}

// narrowKinds leaves the kinds of routes that the listener allows.
func (l *listener) narrowKinds() {
	var allowed []string
	for i, kind := range l.AllowedRoutes.Kinds {
		if (kind.Group == nil || *kind.Group == gateway.GroupName) && slices.Contains(l.kinds, string(kind.Kind)) {
			allowed = append(allowed, string(kind.Kind))
			continue
		}
		l.lacks.add(resolved, string(gateway.ListenerReasonInvalidRouteKinds), fmt.Sprintf("%s.allowedRoutes.kinds[%d]", l.field, i),
			"routes of the kind %s are not supported at a listener of the protocol %s", federation.Quote(string(kind.Kind)), l.Protocol)
	}
	l.kinds = allowed
}

// readTLS reads the certificates of a listener that ends TLS.
func (g *gatewayView) readTLS(r *federation.Reader, l *listener) {
	if l.mode == modeOfMesh {
		if len(l.TLS.CertificateRefs) > 0 {
			l.notes.unsupported(l.field+".tls.certificateRefs", "the certificates of the mesh are used, because of the mode %s", modeOfMesh)
		}
		return
	}
	if l.TLS == nil || len(l.TLS.CertificateRefs) == 0 {
		l.faults.add(resolved, string(gateway.ListenerReasonInvalidCertificateRef), l.field+".tls.certificateRefs",
			"the listener names no certificate; nothing listens")
		return
	}
	if l.TLS.Mode != nil && *l.TLS.Mode != gateway.TLSModeTerminate {
		l.faults.add(accepted, string(gateway.ListenerReasonUnsupportedValue), l.field+".tls.mode",
			"a listener of the protocol %s ends TLS; nothing listens", l.Protocol)
	}
	for i, ref := range l.TLS.CertificateRefs {
		g.readCertificate(r, l, fmt.Sprintf("%s.tls.certificateRefs[%d]", l.field, i), ref)
	}
	if g.spec.TLS != nil && g.spec.TLS.Frontend != nil {
		g.readFrontend(r, l, g.spec.TLS.Frontend)
	}
}

func (g *gatewayView) readCertificate(r *federation.Reader, l *listener, field string, ref gateway.SecretObjectReference) {
	if ref.Group != nil && *ref.Group != "" || ref.Kind != nil && *ref.Kind != "Secret" {
		l.faults.add(resolved, string(gateway.ListenerReasonInvalidCertificateRef), field, "only Secrets are supported; nothing listens")
		return
	}
	use := reference{by: l.of, kind: "Secret", namespace: ref.Namespace, name: string(ref.Name), field: field, otherwise: "nothing listens"}
	if l.mayUseSecret(r, g.Key, use, &l.faults, string(gateway.ListenerReasonInvalidCertificateRef)) {
		l.names = append(l.names, use.name)
	}
}

// permitted reports whether a ReferenceGrant of the namespace lets the object refer to a name in it.
func permitted(r *federation.Reader, from federation.ObjectKey, namespace, group, kind, name string) bool {
	for o := range r.Objects().In(federation.GatewayAPI.ReferenceGrant, namespace) {
		spec, ok := o.Spec.(*gateway.ReferenceGrantSpec)
		if !ok {
			continue
		}
		by := slices.ContainsFunc(spec.From, func(f gateway.ReferenceGrantFrom) bool {
			return string(f.Group) == from.Group && string(f.Kind) == from.Kind && string(f.Namespace) == from.Namespace
		})
		to := slices.ContainsFunc(spec.To, func(t gateway.ReferenceGrantTo) bool {
			return string(t.Group) == group && string(t.Kind) == kind && (t.Name == nil || *t.Name == "" || string(*t.Name) == name)
		})
		if by && to {
			return true
		}
	}
	return false
}

// findConflicts finds listeners that cannot share a port. Of those of several objects the one
// that goes before is used, and the others contest nothing any more. Of those of one object
// none is used.
func (g *gatewayView) findConflicts() {
	lost := map[*listener]bool{}
	for _, l := range g.listeners { // by rank
		lost[l] = contested(g, l, func(other *listener) bool { return other.rank < l.rank && !lost[other] })
	}
	for _, l := range g.listeners {
		if !lost[l] {
			contested(g, l, func(other *listener) bool { return other != l && other.rank == l.rank && !lost[other] })
		}
	}
}

// contested reports whether the listener cannot share its port with one of the others, which
// is a fault.
func contested(g *gatewayView, l *listener, by func(*listener) bool) bool {
	for _, other := range g.listeners {
		if !by(other) || !l.sharesPort(other) || protocolName(l.Protocol) == "" || protocolName(other.Protocol) == "" {
			continue
		}
		switch {
		case protocolName(l.Protocol) != protocolName(other.Protocol):
			l.faults.add(accepted, string(gateway.ListenerReasonProtocolConflict), l.field+".protocol",
				"port %d has other listeners of another protocol; nothing listens", l.Port)
			return true
		case l.host == other.host:
			l.faults.add(accepted, string(gateway.ListenerReasonHostnameConflict), l.field+".hostname",
				"port %d has another listener for the hostname %s; nothing listens", l.Port, l.host)
			return true
		}
	}
	return false
}

// protocolName is what the connections to a listener speak; "" for protocols that are not supported.
func protocolName(p gateway.ProtocolType) string {
	switch p {
	case gateway.HTTPProtocolType:
		return "plaintext"
	case gateway.HTTPSProtocolType, gateway.TLSProtocolType:
		return "TLS"
	case gateway.TCPProtocolType:
		return "TCP"
	case gateway.UDPProtocolType:
		return "UDP"
	}
	return ""
}

// sharesPort reports whether what comes for one of the listeners could be for the other: TCP and
// UDP have ports of their own.
func (l *listener) sharesPort(other *listener) bool {
	return l.Port == other.Port && (l.Protocol == gateway.UDPProtocolType) == (other.Protocol == gateway.UDPProtocolType)
}

// listens reports whether the listener is used.
func (l *listener) listens() bool { return len(l.faults) == 0 }

// finish writes what is known of the listeners into the statuses. attached counts routes.
func (g *gatewayView) finish(attached []int) {
	for i, l := range g.listeners {
		faulty := slices.Concat(l.faults, l.lacks)
		if !l.listens() {
			faulty = append(faulty, Condition{Type: programmed, Reason: l.unprogrammed(), Field: l.field})
		}
		l.notes.Listeners = append(l.notes.Listeners, ListenerStatus{
			Name: string(l.Name), Attached: attached[i], Kinds: l.kinds, Secrets: l.secrets(g.Key.Namespace),
			Conditions: faulty.conditions(accepted, programmed, resolved),
		})
	}
	if g.listeners == nil {
		return
	}
	g.status.Controller = g.class
	g.status.Conditions = slices.Concat(g.summary(g.Key), insecure(g.spec), g.certificate.conditions())
	for _, set := range g.sets {
		if set.allowed {
			set.status.Controller, set.status.Conditions = g.class, g.summary(set.Key)
		}
		if holds(set.status.Conditions, accepted) {
			g.status.Sets++
		}
	}
}

// secrets are those that gateways use for the listener.
func (l *listener) secrets(own string) (all []Secret) {
	if !l.listens() {
		return nil
	}
	from := cmp.Or(l.from, own)
	for _, name := range l.names {
		all = append(all, Secret{Namespace: from, Name: name, Granted: from != own})
	}
	if roots := l.authorities(); roots != "" {
		all = append(all, Secret{Namespace: from, Name: roots, Authorities: true, Granted: from != own})
	}
	return all
}

// authorities is the Secret with the authorities of clients; "": they are not in one.
func (l *listener) authorities() string {
	if l.roots == "" && l.inline == "" && l.mode != "" && len(l.names) > 0 {
		return l.names[0]
	}
	return l.roots
}

// unprogrammed is the reason that nothing listens: the conflict of the listener, if it has one.
func (l *listener) unprogrammed() string {
	for _, c := range l.faults {
		switch gateway.ListenerConditionReason(c.Reason) {
		case gateway.ListenerReasonProtocolConflict, gateway.ListenerReasonHostnameConflict:
			return c.Reason
		}
	}
	return string(gateway.ListenerReasonInvalid)
}

// summary are the conditions of an object with the listeners that it has.
func (g *gatewayView) summary(of federation.ObjectKey) []Condition {
	var f faults
	if in := g.spec.Infrastructure; of == g.Key && in != nil && in.ParametersRef != nil {
		f.add(accepted, string(gateway.GatewayReasonInvalidParameters), "spec.infrastructure.parametersRef",
			"the hub deploys no proxies and reads no parameters for them")
	}
	var listening, lacking bool
	for _, l := range g.listeners {
		listening, lacking = listening || l.of == of && l.listens(), lacking || l.of == of && !l.listens()
	}
	invalid, unprogrammed := string(gateway.GatewayReasonListenersNotValid), string(gateway.GatewayReasonInvalid)
	if of.Of() == federation.GatewayAPI.ListenerSet {
		unprogrammed = invalid
	}
	switch {
	case !listening:
		f = append(f, Condition{Type: programmed, Reason: unprogrammed, Field: "spec.listeners"})
		f = append(f, Condition{Type: accepted, Reason: invalid, Field: "spec.listeners"})
	case lacking && !f.has(accepted):
		f = append(f, Condition{Type: accepted, Status: true, Reason: invalid})
	}
	return f.conditions(accepted, programmed)
}

// common is the narrower of two hosts, or "" if no name is meant by both.
func common(a, b string) string {
	switch {
	case translated.Covers(a, b):
		return b
	case translated.Covers(b, a):
		return a
	}
	return ""
}
