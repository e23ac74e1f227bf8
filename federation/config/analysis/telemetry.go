package analysis

import (
	"fmt"
	"slices"

	api "istio.io/api/telemetry/v1alpha1"

	"isthmus.dev/isthmus/federation"
)

// Telemetry reports providers that MeshSettings do not have, and what decides instead of the
// object.
func Telemetry(r *References, spec *api.Telemetry) {
	for i, item := range spec.GetAccessLogging() {
		inherited := len(r.reader.Mesh().Logs()) > 0 || r.named(func(t *api.Telemetry) bool {
			return slices.ContainsFunc(t.GetAccessLogging(), func(l *api.AccessLogging) bool { return len(l.GetProviders()) > 0 })
		})
		r.providers(fmt.Sprintf("spec.accessLogging[%d]", i), item.GetProviders(), inherited)
	}
	for i, item := range spec.GetTracing() {
		inherited := len(r.reader.Mesh().Traces()) > 0 || r.named(func(t *api.Telemetry) bool {
			return slices.ContainsFunc(t.GetTracing(), func(l *api.Tracing) bool { return len(l.GetProviders()) > 0 })
		})
		r.providers(fmt.Sprintf("spec.tracing[%d]", i), item.GetProviders(), inherited)
	}
	own := r.object.Key
	general := isGeneral(spec)
	if !general && own.Namespace == r.reader.Mesh().Root() {
		r.Add(ruleIgnored, "spec.selector", "in the root namespace, an object with a selector is for workloads of that namespace alone")
	}
	for o := range r.reader.Objects().In(own.Of(), own.Namespace) {
		other, _ := o.Spec.(*api.Telemetry)
		if o.Key != own && general && isGeneral(other) && r.meets(o) && o.Older(r.object) {
			r.Add(ruleIgnored, "spec", "%s is for the same workloads and older: it decides, and this object has no effect", o.Key.Title())
			return
		}
	}
}

func isGeneral(spec *api.Telemetry) bool {
	return len(spec.GetSelector().GetMatchLabels()) == 0 && spec.GetTargetRef() == nil && len(spec.GetTargetRefs()) == 0
}

// providers reports those that do not exist, and that there are none at all.
func (r *References) providers(at string, refs []*api.ProviderRef, inherited bool) {
	mesh := r.reader.Mesh()
	for i, ref := range refs {
		if _, known := mesh.ExtensionProvider(ref.GetName()); !known && ref.GetName() != federation.EnvoyProvider {
			r.Add(NotFoundReference, fmt.Sprintf("%s.providers[%d].name", at, i),
				"MeshSettings have no provider %q in extensionProviders: nothing is sent to it", ref.GetName())
		}
	}
	if len(refs) == 0 && !inherited {
		r.Add(ruleIgnored, at,
			"it has no effect: neither it nor an object that it inherits from names a provider, and MeshSettings have no defaultProviders")
	}
}

// named reports whether an object of the namespace or of the root namespace names providers.
func (r *References) named(names func(*api.Telemetry) bool) bool {
	for _, namespace := range []string{r.object.Key.Namespace, r.reader.Mesh().Root()} {
		for o := range r.reader.Objects().In(r.object.Key.Of(), namespace) {
			if spec, _ := o.Spec.(*api.Telemetry); names(spec) {
				return true
			}
		}
	}
	return false
}
