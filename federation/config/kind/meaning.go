package kind

import (
	"maps"
	"net/netip"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/external"
)

// Decoded is an object with its spec, as a row reads it.
type Decoded struct {
	*federation.Object
	Manifest []byte
	Domain   string // ends names of services
	// Share returns the one map that is used for all equal labels.
	Share func(map[string]string) map[string]string
}

// Meaning is what an object says to the mesh beside its spec.
type Meaning struct {
	Entry       *external.Reading
	WorkloadKey federation.WorkloadKey
	Workload    *federation.Workload
	// AwaitsHealth has the workload be unhealthy unless its proxy reports that it is healthy.
	AwaitsHealth bool
	// Condition is what istiod stores of the health of a WorkloadEntry of its cluster; nil: it is not of a cluster.
	Condition *HealthCondition
	Binding   *Binding
	Addresses []netip.Addr // of an Allocation
	Problems  []federation.Problem
	// WithoutSpec has the object decoded again for the rare reader of its spec: the
	// meaning replaces it.
	WithoutSpec bool
	Hidden      bool // no reader of a snapshot sees the object
}

// Index sets the names and the labels of proxies by which readers find the object.
func Index(d Decoded) {
	r := Of(d.Key.Of())
	d.Names = nil
	if r.names != nil {
		for _, name := range r.names(d, d.Spec) {
			if name != "" && !slices.Contains(d.Names, name) {
				d.Names = append(d.Names, name)
			}
		}
	}
	keys := map[string]bool{}
	if r.proxyLabels != nil {
		r.proxyLabels(d.Spec, func(labels map[string]string) {
			for key := range labels {
				keys[key] = true
			}
		})
	}
	d.ProxyLabels = slices.Sorted(maps.Keys(keys))
}

// Translate says what the object means to the mesh beside its spec.
func Translate(d Decoded) Meaning {
	r := Of(d.Key.Of())
	if r.translate == nil {
		return Meaning{}
	}
	return r.translate(d, d.Spec)
}
