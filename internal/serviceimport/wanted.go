package serviceimport

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// Spec is what the hub says about an imported service, as it is written: addresses that there
// are not are taken away. Other fields are left as they are.
type Spec struct {
	Type  string   `json:"type"`
	IPs   []string `json:"ips"`
	Ports []Port   `json:"ports"`
	// That of the oldest export, as are the seconds; null takes them away.
	SessionAffinity       string          `json:"sessionAffinity"`
	SessionAffinityConfig *affinityConfig `json:"sessionAffinityConfig"`
}

type affinityConfig struct {
	ClientIP clientIP `json:"clientIP"`
}

type clientIP struct {
	TimeoutSeconds uint32 `json:"timeoutSeconds"`
}

// Port is a port of an imported service.
type Port struct {
	Name     string `json:"name,omitempty"`
	Protocol string `json:"protocol"`
	Port     int    `json:"port"`
}

// setAffinity sets how long clients stay with an endpoint.
func (s *Spec) setAffinity(a federation.ClientAffinity) {
	s.SessionAffinity = a.String()
	if a.Seconds > 0 {
		s.SessionAffinityConfig = &affinityConfig{clientIP{a.Seconds}}
	}
}

// digest identifies what the hub says.
func (s Spec) digest() string {
	if len(s.IPs) == 0 {
		s.IPs = nil
	}
	text, _ := json.Marshal(s) // strings and numbers
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Import is the ServiceImport of an exported service.
type Import struct {
	Spec     Spec
	Clusters []string // that export it, in order
}

// digest identifies what the hub writes.
func (i Import) digest() string { return i.Spec.digest() + " " + strings.Join(i.Clusters, " ") }

// keyOf is the ServiceImport of the service; false: it is not an exported service.
func keyOf(service federation.ServiceKey) (listwatch.Key, bool) {
	name, is := strings.CutSuffix(string(service.Hostname), "."+service.Namespace+".svc."+federation.ClusterSetDomain)
	return listwatch.Key{Namespace: service.Namespace, Name: name}, is && name != "" && !strings.Contains(name, ".")
}

// importOf is what the clusters should have of an exported service.
func importOf(svc *federation.Service) Import {
	i := Import{Spec: Spec{Type: "ClusterSetIP", Ports: []Port{}}}
	if svc.Resolution == federation.Passthrough {
		i.Spec.Type = "Headless"
	}
	i.Spec.setAffinity(svc.Affinity())
	if svc.HasAutomaticVIPs() {
		i.Spec.IPs = []string{svc.Key.AutomaticVIPs()[0].String()}
	}
	for _, p := range svc.Ports {
		protocol := "TCP"
		if p.Protocol == federation.UDP {
			protocol = "UDP"
		}
		i.Spec.Ports = append(i.Spec.Ports, Port{Name: p.Name, Protocol: protocol, Port: int(p.Number)})
	}
	for source := range svc.Shards.All() {
		i.Clusters = append(i.Clusters, string(source.Cluster))
	}
	slices.Sort(i.Clusters)
	i.Clusters = slices.Compact(i.Clusters)
	return i
}
