package analysis

import (
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// SubsetEmpty is the code of a finding about a subset to which no endpoint belongs.
const SubsetEmpty = "SUBSET_EMPTY"

// DestinationRule reports a host that does not exist, and subsets whose labels no endpoint has.
func DestinationRule(r *References, spec *networking.DestinationRule) {
	if !r.Host("spec.host", spec.GetHost()) || len(spec.GetSubsets()) == 0 || strings.HasPrefix(spec.GetHost(), "*") {
		return
	}
	host := federation.ResolveHost(spec.GetHost(), r.object.Key.Namespace)
	endpoints := r.endpoints(host)
	if len(endpoints) == 0 { // what the service lacks is not for the rule to say
		return
	}
	for i, subset := range spec.GetSubsets() {
		if !anyHas(endpoints, subset.GetLabels()) {
			r.Add(SubsetEmpty, fmt.Sprintf("spec.subsets[%d].labels", i),
				"no endpoint of %s has the labels of the subset %q: requests to it get 503 until one has", host, subset.GetName())
		}
	}
}

// endpoint is one between which proxies choose, with those of its shard.
type endpoint struct {
	group federation.ShardEndpoints
	*federation.Endpoint
}

// endpoints are those of the host between which proxies choose.
func (r *References) endpoints(host federation.Hostname) []endpoint {
	var all []endpoint
	for _, spec := range r.reader.ByHostname(host) {
		svc, ok := r.reader.Endpoints(spec.Key)
		if !ok || svc.Resolution == federation.Passthrough {
			continue
		}
		for _, group := range svc.Endpoints {
			for i := range group.Endpoints {
				all = append(all, endpoint{group, &group.Endpoints[i]})
			}
		}
	}
	return all
}

func anyHas(endpoints []endpoint, labels map[string]string) bool {
	return slices.ContainsFunc(endpoints, func(e endpoint) bool { return e.group.HasLabels(e.Endpoint, labels) })
}
