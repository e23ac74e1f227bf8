package analysis

import (
	api "istio.io/api/networking/v1alpha3"
)

// notEnabled is the code of objects that MeshSettings have to enable.
const notEnabled = "NOT_ENABLED"

// EnvoyFilter reports that the mesh does not apply EnvoyFilters of the object's namespace.
func EnvoyFilter(r *References, _ *api.EnvoyFilter) {
	if namespace := r.object.Key.Namespace; !r.reader.Mesh().AllowsEnvoyFilters(namespace) {
		r.Add(notEnabled, "spec.configPatches",
			"envoyFilters.namespaces of MeshSettings does not list namespace %q: no patch takes effect; list the namespace if its authors may change all that its proxies do", namespace)
	}
}
