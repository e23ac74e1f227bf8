package envoyfilter

import (
	"fmt"

	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Unmatched tells of the patches of an EnvoyFilter that match nothing. matched has the fields of
// those that match some resource.
func Unmatched(o *federation.Object, mesh *federation.MeshSettings, matched map[string]bool) []resource.Reason {
	spec, is := o.Spec.(*api.EnvoyFilter)
	if !is || !mesh.AllowsEnvoyFilters(o.Key.Namespace) {
		return nil
	}
	var found []resource.Reason
	for i, p := range spec.GetConfigPatches() {
		patch := Patch{Object: o.Key, Index: i, Spec: p}
		if _, err := read(patch); err != nil || matched[patch.Field()] {
			continue
		}
		found = append(found, resource.Reason{
			Code: resource.ReasonPatchMatchesNothing, Cause: o.Key,
			Message: fmt.Sprintf("%s matches nothing that connected proxies have: compare its match with isthmus proxy config", patch.Field()),
		})
	}
	return found
}
