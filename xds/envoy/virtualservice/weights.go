package virtualservice

import (
	"math"
	"slices"

	networking "istio.io/api/networking/v1"
)

// Weighted are the destinations that get requests: those with a weight, or the
// only one.
func Weighted(all []*networking.HTTPRouteDestination) []*networking.HTTPRouteDestination {
	if len(all) == 1 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(d *networking.HTTPRouteDestination) bool { return d.GetWeight() <= 0 })
}

// ScaleOf is by what weights are divided, so that Envoy can add them up.
func ScaleOf[D interface{ GetWeight() int32 }](destinations []D) uint32 {
	sum := uint64(0)
	for _, d := range destinations {
		sum += uint64(d.GetWeight())
	}
	return uint32(sum/math.MaxUint32) + 1
}
