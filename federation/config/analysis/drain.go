package analysis

import (
	"fmt"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// DrainRefused is the code of a finding about services that a Drain leaves as they are.
const DrainRefused = "DRAIN_REFUSED"

// mostDrains is how many services a finding names.
const mostDrains = 5

// Drain reports services that are not drained, and a Drain that covers no endpoint.
func Drain(r *References, spec *federation.DrainObject) {
	var named []string
	drained, refused := 0, 0
	for spec := range r.reader.Specs() {
		svc, _ := r.reader.Endpoints(spec.Key)
		for _, d := range svc.Drains {
			switch {
			case d.Drain != r.object.Key:
			case d.Refused == "":
				drained++
			default:
				refused++
				if refused <= mostDrains {
					named = append(named, fmt.Sprintf("%s (%s)", svc.Key, d.Refused))
				}
			}
		}
	}
	switch {
	case refused > len(named):
		named = append(named, fmt.Sprintf("and %d more", refused-len(named)))
	case drained+refused == 0 && spec.Share() > 0:
		r.nothingDrained(spec)
	}
	if refused > 0 {
		r.Add(DrainRefused, "spec", "%d of %d services are not drained: %s; add endpoints elsewhere, or set force", refused,
			drained+refused, strings.Join(named, ", "))
	}
}

// nothingDrained says why a Drain covers nothing: most often, its cluster or network has another name.
func (r *References) nothingDrained(spec *federation.DrainObject) {
	if _, attached := r.reader.Cluster(spec.Cluster); spec.Cluster != "" && !attached {
		r.Add(NotFoundReference, "spec.cluster", "no cluster %q is attached", spec.Cluster)
		return
	}
	if _, known := r.reader.Network(spec.NetworkID); spec.NetworkID != "" && !known {
		r.Add(NotFoundReference, "spec.networkID", "there is no network %q", spec.NetworkID)
		return
	}
	r.Add(NotFoundReference, "spec", "no endpoint of a service is drained: none is there, or a Drain with a larger percent covers them all")
}
