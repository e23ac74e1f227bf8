package external_test

import (
	"strings"
	"testing"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/external"
)

// TestK86PortsOfSidecarsAreReported: a port at which sidecars listen has a problem that names it, where the service would need a
// listener at every address; the port is part of the service all the same, for gateways and for connections to its address.
func TestK86PortsOfSidecarsAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		port      *networking.ServicePort
		addresses []string
		reported  bool
	}{
		"requests":                          {&networking.ServicePort{Number: 15001, Protocol: "HTTP"}, []string{"240.0.1.1"}, true},
		"requests at a port of the agent":   {&networking.ServicePort{Number: 15090, Protocol: "GRPC"}, []string{"240.0.1.1"}, true},
		"a protocol that is detected":       {&networking.ServicePort{Number: 15021}, []string{"240.0.1.1"}, true},
		"connections to a range":            {&networking.ServicePort{Number: 15006, Protocol: "TCP"}, []string{"240.0.1.0/24"}, true},
		"connections to an address":         {&networking.ServicePort{Number: 15006, Protocol: "TCP"}, []string{"240.0.1.1"}, false},
		"connections to an automatic VIP":   {&networking.ServicePort{Number: 15006, Protocol: "TCP"}, nil, true},
		"connections to a VIP and a range":  {&networking.ServicePort{Number: 15090, Protocol: "TCP"}, []string{"240.0.1.1", "240.0.2.0/24"}, true},
		"datagrams":                         {&networking.ServicePort{Number: 15001, Protocol: "UDP"}, []string{"240.0.1.1"}, false},
		"requests at a port beside these":   {&networking.ServicePort{Number: 15002, Protocol: "HTTP"}, []string{"240.0.1.1"}, false},
		"requests at the port of the admin": {&networking.ServicePort{Number: 15000, Protocol: "HTTP"}, []string{"240.0.1.1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.port.Name = "p"
			key := federation.ServiceKey{Hostname: "far.example.com", Namespace: "shop"}
			services, problems := external.Services([]external.Entry{{
				Key: federation.ObjectKey{Group: "networking.istio.io", Kind: "ServiceEntry", Namespace: "shop", Name: "far"},
				Spec: &networking.ServiceEntry{
					Hosts: []string{string(key.Hostname)}, Ports: []*networking.ServicePort{c.port}, Addresses: c.addresses,
					Resolution: networking.ServiceEntry_STATIC, Endpoints: []*networking.WorkloadEntry{{Address: "192.0.2.1"}},
				},
			}}, nil)
			if s := services[key]; s == nil || len(s.Ports) != 1 {
				t.Errorf("the service is %+v", s)
			}
			var said []string
			for _, p := range problems {
				said = append(said, p.Code+" "+p.Field)
			}
			if got := strings.Join(said, ", "); (got == "PORT_OF_SIDECAR spec.ports[0].number") != c.reported || !c.reported && got != "" {
				t.Errorf("the problems are %q", got)
			}
		})
	}
}
