package consul

import (
	"fmt"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

// TestU50DatacentersHaveAnyNameThatConsulTakes: a real Consul takes lower-case letters, digits, - and _, and long names. The
// hub reads each, knows it again, and gives services the datacenter's name in theirs only where that is a DNS label. The
// ID of the cluster may be the same.
func TestU50DatacentersHaveAnyNameThatConsulTakes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"eu_west_1", "-", "_", "0", strings.Repeat("d", 200), "c1"} {
		t.Run(name[:min(len(name), 20)], func(t *testing.T) {
			t.Parallel()
			r := startRig(t, testbed.ConsulOptions{Datacenter: name}, Options{})
			r.fill("web", 1)
			recorder, stop := registrytest.Start(t, r)
			v := recorder.WaitPhase(t, federation.Ready)
			if len(v.Services) != 1 || len(v.Problems) != 0 || !strings.HasPrefix(v.Identity.UID, name+"/") {
				t.Fatalf("%s: %d services, problems %v", v.Identity.UID, len(v.Services), v.Problems)
			}
			for key, s := range v.Services {
				want := "[]"
				if isLabel(name) {
					want = "[web-000.service." + name + ".consul]"
				}
				if got := fmt.Sprint(s.Aliases); key.Hostname != "web-000.service.consul" || got != want {
					t.Errorf("%s has the names %s, want %s", key, got, want)
				}
				for _, e := range s.Endpoints {
					if e.Locality.Zone != name {
						t.Errorf("an endpoint is in the zone %q", e.Locality.Zone)
					}
				}
			}
			stop()
			r.options.Expect = v.Identity.UID
			again, _ := registrytest.Start(t, r)
			again.WaitPhase(t, federation.Ready)
		})
	}
}
