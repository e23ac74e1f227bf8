package testbed

import (
	"fmt"
	"strings"
)

// PartnerEntries returns n ServiceEntries of three endpoints each, in one namespace and
// numbered from first: about 470 bytes of YAML each. The number is part of an entry's name,
// host and addresses.
func PartnerEntries(namespace string, first, n int) []byte {
	var all strings.Builder
	for i := first; i < first+n; i++ {
		fmt.Fprintf(&all, `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: partner-%[1]d, namespace: %[2]s, labels: {team: shop}}
spec:
  hosts: [api-%[1]d.partner.example.com]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports: [{name: https, number: 443, protocol: TLS}]
  endpoints:
  - {address: 203.%[3]d.%[4]d.1, labels: {version: v1}, locality: eu/a}
  - {address: 203.%[3]d.%[4]d.2, labels: {version: v1}, locality: eu/b}
  - {address: 203.%[3]d.%[4]d.3, labels: {version: v2}, locality: eu/c}
---
`, i, namespace, i/250, i%250)
	}
	return []byte(all.String())
}
