package check

import (
	"math/big"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// What Envoy takes of the sizes of rings and tables.
const (
	MaxRingSize  = 8 << 20
	MaxTableSize = 5000011
)

// IsTableSize reports whether Envoy takes a Maglev table of that size.
func IsTableSize(size uint64) bool {
	return size <= MaxTableSize && new(big.Int).SetUint64(size).ProbablyPrime(0)
}

// MaxSocketPath is what the kernel takes.
const MaxSocketPath = 107

// CountEndpoints counts the endpoints of all localities.
func CountEndpoints(a *endpointv3.ClusterLoadAssignment) int {
	n := 0
	for _, l := range a.GetEndpoints() {
		n += len(l.GetLbEndpoints())
	}
	return n
}
