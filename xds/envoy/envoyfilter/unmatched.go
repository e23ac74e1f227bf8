package envoyfilter

import (
	"fmt"

	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Found are the reasons to show of an EnvoyFilter: those that are given, without those that tell
// of a match, and one for each patch that matches nothing.
func Found(o *federation.Object, mesh *federation.MeshSettings, given []resource.Reason) []resource.Reason {
	var found []resource.Reason
	matched := map[string]bool{}
	for _, r := range given {
		if r.Code == resource.ReasonPatchMatched {
			matched[r.Message] = true
			continue
		}
		found = append(found, r)
	}
	spec, is := o.Spec.(*api.EnvoyFilter)
	if !is || !mesh.AllowsEnvoyFilters(o.Key.Namespace) {
		return found
	}
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
