package analysis

import security "istio.io/api/security/v1"

// AuthorizationPolicy reports a provider that MeshSettings do not have.
func AuthorizationPolicy(r *References, spec *security.AuthorizationPolicy) {
	name := spec.GetProvider().GetName()
	if spec.GetAction() != security.AuthorizationPolicy_CUSTOM {
		return
	}
	if _, has := r.reader.Mesh().ExtensionProvider(name); !has {
		r.Add(NotFoundReference, "spec.provider.name",
			"MeshSettings have no provider %q in extensionProviders: everything is denied that the object selects", name)
	}
}
