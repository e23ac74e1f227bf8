package federation

import (
	"math"
	"math/bits"
	"slices"
)

// mostWeight is what the weights of all endpoints of a cluster may add up to in
// a proxy.
const mostWeight = math.MaxUint32

// offer is what a binding takes from one service.
type offer struct {
	weight    uint64 // its part of the requests; not 0
	endpoints []Endpoint
}

// weigh scales the weights of the endpoints so that each offer takes its part of
// the requests, whatever the number of its endpoints: by whole numbers, exactly,
// where that stays within mostWeight, else as closely as that allows. No weight
// falls below 1.
func weigh(offers []offer) {
	factors, ok := exactFactors(offers)
	if !ok {
		weighRoughly(offers)
		return
	}
	for i, factor := range factors {
		if factor == 1 {
			continue
		}
		for j := range offers[i].endpoints {
			e := &offers[i].endpoints[j]
			e.Weight = uint32(uint64(e.LoadBalancingWeight()) * factor)
		}
	}
}

// sums are the weights of the endpoints that requests go to (those in the best
// state that there is) and of all.
func (o offer) sums() (active, all uint64) {
	best := slices.MinFunc(o.endpoints, func(a, b Endpoint) int { return a.Health.rank() - b.Health.rank() }).Health.rank()
	for i := range o.endpoints {
		w := uint64(o.endpoints[i].LoadBalancingWeight())
		all += w
		if o.endpoints[i].Health.rank() == best {
			active += w
		}
	}
	return active, all
}

// exactFactors finds the smallest whole numbers that do it; false if there are
// none within mostWeight.
func exactFactors(offers []offer) ([]uint64, bool) {
	multiple := uint64(1)
	for _, o := range offers {
		active, _ := o.sums()
		part := active / gcd(active, o.weight)
		hi, lo := bits.Mul64(multiple/gcd(multiple, part), part)
		if hi != 0 || lo > mostWeight {
			return nil, false
		}
		multiple = lo
	}
	factors := make([]uint64, len(offers))
	var common uint64
	for i, o := range offers {
		active, _ := o.sums()
		hi, lo := bits.Mul64(o.weight, multiple)
		if hi != 0 {
			return nil, false
		}
		factors[i] = lo / active
		common = gcd(common, factors[i])
	}
	var total uint64
	for i, o := range offers {
		_, all := o.sums()
		factors[i] /= common
		hi, lo := bits.Mul64(all, factors[i])
		total += lo
		if hi != 0 || lo > mostWeight || total > mostWeight {
			return nil, false
		}
	}
	return factors, true
}

func weighRoughly(offers []offer) {
	var parts, count float64
	for _, o := range offers {
		active, all := o.sums()
		parts += float64(o.weight) * float64(all) / float64(active)
		count += float64(len(o.endpoints))
	}
	for _, o := range offers {
		active, _ := o.sums()
		factor := float64(o.weight) / float64(active) * (mostWeight - count) / parts
		for j := range o.endpoints {
			e := &o.endpoints[j]
			e.Weight = uint32(max(1, float64(e.LoadBalancingWeight())*factor))
		}
	}
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
