package analysis

import (
	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
)

// The codes of findings about policies.
const (
	NotEnforced = "NOT_ENFORCED"
	ruleIgnored = "RULE_IGNORED"
)

// HasMode reports whether the PeerAuthentication has the mode, for all ports or for one.
func HasMode(spec *security.PeerAuthentication, mode security.PeerAuthentication_MutualTLS_Mode) bool {
	if spec.GetMtls().GetMode() == mode {
		return true
	}
	for _, port := range spec.GetPortLevelMtls() {
		if port.GetMode() == mode {
			return true
		}
	}
	return false
}

// PeerAuthentication reports what decides before the object, and where nothing refuses the
// plain text that it forbids.
func PeerAuthentication(r *References, spec *security.PeerAuthentication) {
	own, labels := r.object.Key, spec.GetSelector().GetMatchLabels()
	root := r.reader.Mesh().Root()
	if len(labels) > 0 && own.Namespace == root {
		r.Add(ruleIgnored, "spec.selector",
			"in the root namespace a selector selects nothing: put the object into the namespace of the workloads")
		return
	}
	for o := range r.reader.Objects().In(own.Of(), own.Namespace) {
		other := selectorOf(o)
		if o.Key == own || !r.meets(o) || !o.Older(r.object) || (len(other) == 0) != (len(labels) == 0) || !mayMeet(labels, other) {
			continue
		}
		if federation.MatchesLabels(labels, []map[string]string{other}) {
			r.Add(ruleIgnored, "spec", "%s is for the same workloads and older: it decides, and this object has no effect", o.Key.Title())
			return
		}
		r.Add(ruleIgnored, "spec.selector", "%s is older: it decides where a workload has the labels of both", o.Key.Title())
	}
	if HasMode(spec, security.PeerAuthentication_MutualTLS_STRICT) {
		r.plainText(labels, root)
	}
}

func selectorOf(o *federation.Object) map[string]string {
	spec, _ := o.Spec.(*security.PeerAuthentication)
	return spec.GetSelector().GetMatchLabels()
}

// mayMeet reports whether a workload can have the labels of both.
func mayMeet(labels, other map[string]string) bool {
	for key, value := range other {
		if own, has := labels[key]; has && own != value {
			return false
		}
	}
	return true
}

// plainText reports the first endpoint that is to refuse plain text and has no sidecar that
// would.
func (r *References) plainText(labels map[string]string, root string) {
	own := r.object.Key
	for svc := range r.reader.Specs() {
		if svc.MeshExternal || own.Namespace != root && svc.Key.Namespace != own.Namespace {
			continue
		}
		svc, _ := r.reader.Endpoints(svc.Key)
		for _, group := range svc.Endpoints {
			for i := range group.Endpoints {
				e := &group.Endpoints[i]
				ours := own.Cluster == "" || own.Cluster == group.ClusterOf(e)
				if ours && !e.TakesMutualTLS() && group.HasLabels(e, labels) &&
					!r.decidedCloser(svc.Key.Namespace, func(l map[string]string) bool { return group.HasLabels(e, l) }) {
					r.Add(NotEnforced, "spec",
						"%s of %s, for example, has no sidecar with an identity of the mesh (label security.istio.io/tlsMode: istio): callers speak plain text to it, and nothing refuses that", e.Address, svc.Key)
					return
				}
			}
		}
	}
}

// decidedCloser reports whether an object that is closer to the workload decides about it.
func (r *References) decidedCloser(namespace string, has func(labels map[string]string) bool) bool {
	own := r.object.Key
	general := len(selectorOf(r.object)) == 0
	for o := range r.reader.Objects().In(own.Of(), namespace) {
		selector := selectorOf(o)
		closer := general && (len(selector) > 0 || namespace != own.Namespace)
		if closer && r.meets(o) && has(selector) {
			return true
		}
	}
	return false
}
