package envoyfilter

import (
	"fmt"
	"slices"

	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

type filterClass = api.EnvoyFilter_Patch_FilterClass

// classes are those of the filters that the hub adds. Peers are known before all classes.
var classes = map[string]filterClass{
	resource.ExchangeFilter:    api.EnvoyFilter_Patch_UNSPECIFIED,
	resource.JWTFilter:         api.EnvoyFilter_Patch_AUTHN,
	resource.RBACFilter:        api.EnvoyFilter_Patch_AUTHZ,
	resource.ProviderFilter:    api.EnvoyFilter_Patch_AUTHZ,
	resource.TCPRBACFilter:     api.EnvoyFilter_Patch_AUTHZ,
	resource.TCPProviderFilter: api.EnvoyFilter_Patch_AUTHZ,
}

// class is the class of filters by which the patch says where its filter is added.
func (j *job) class() filterClass { return j.Spec.GetPatch().GetFilterClass() }

// placed reports a class that says nothing about the patch.
func (j *job) placed() error {
	to := j.Spec.GetApplyTo()
	switch {
	case j.class() == api.EnvoyFilter_Patch_UNSPECIFIED:
	case to != api.EnvoyFilter_HTTP_FILTER && to != api.EnvoyFilter_NETWORK_FILTER:
		return fmt.Errorf("patch.filterClass is for HTTP_FILTER and NETWORK_FILTER: remove it")
	case j.op != add:
		return fmt.Errorf("patch.filterClass is for ADD, not for %s: use one of them", j.op)
	}
	return nil
}

// end is where ADD puts the patch's filter: behind those of its class and of earlier ones, the
// filters of earlier patches included. Filters of statistics come last: before them, what they
// count is complete. Without a class, it is before the filter that must be the last one.
func end[F interface{ GetName() string }](j *job, filters []F, mustBeLast func(F) bool) int {
	last := beforeLast(filters, mustBeLast)
	switch j.class() {
	case api.EnvoyFilter_Patch_UNSPECIFIED:
		return last
	case api.EnvoyFilter_Patch_STATS:
		at := slices.IndexFunc(filters[:last], func(f F) bool { return f.GetName() == resource.StatsFilter })
		if at < 0 {
			return last
		}
		return at
	}
	at := 0
	for i, f := range filters[:last] {
		if class, known := j.classOf(f.GetName()); known && class <= j.class() {
			at = i + 1
		}
	}
	return at
}

// classOf is the class of a filter that the hub or an earlier patch has added.
func (j *job) classOf(filter string) (filterClass, bool) {
	class, known := classes[filter]
	for _, e := range j.earlier {
		if !known && e.class() != api.EnvoyFilter_Patch_UNSPECIFIED && nameOf(e.value) == filter {
			class, known = e.class(), true
		}
	}
	return class, known
}
