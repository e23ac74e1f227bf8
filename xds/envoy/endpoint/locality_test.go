package endpoint

import (
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
)

// TestOrderOfLocalities: each case names the field of a DestinationRule that it is about.
func TestOrderOfLocalities(t *testing.T) {
	const outlier = `"outlierDetection": {"consecutive5xxErrors": 3}`
	lb := func(setting string) string {
		return outlier + `, "loadBalancer": {"localityLbSetting": {` + setting + `}}`
	}
	zones := func(setting string) string {
		return outlier + `, "loadBalancer": {"zoneAwareLbSetting": {` + setting + `}}`
	}
	const here, zone, region = "10.0.0.1 r1/z1/s1", "10.0.0.2 r1/z1/s2", "10.0.0.3 r1/z2"
	const far, farther = "10.0.0.4 r2/z1", "10.0.0.5 r3/z1"
	for name, test := range map[string]struct {
		policy    string
		endpoints []string
		want      string
		noted     string
	}{
		"outlierDetection": {
			outlier,
			[]string{here, zone, region, far},
			"[0] r1/z1/s1 1: 10.0.0.1; [1] r1/z1/s2 1: 10.0.0.2; [2] r1/z2 1: 10.0.0.3; [3] r2/z1 1: 10.0.0.4", "",
		},
		"priorities have no gap":             {outlier, []string{far, zone}, "[0] r1/z1/s2 1: 10.0.0.2; [1] r2/z1 1: 10.0.0.4", ""},
		"localityLbSetting.enabled is false": {lb(`"enabled": false`), []string{here, far}, "[0] r1/z1/s1 1: 10.0.0.1; [0] r2/z1 1: 10.0.0.4", ""},
		"failover": {
			lb(`"failover": [{"from": "r1", "to": "r3"}]`),
			[]string{here, far, farther},
			"[0] r1/z1/s1 1: 10.0.0.1; [1] r3/z1 1: 10.0.0.5; [2] r2/z1 1: 10.0.0.4", "",
		},
		"failover, the first from": {
			lb(`"failover": [{"from": "r1", "to": "r3"}, {"from": "r1", "to": "r2"}]`), []string{far, farther}, "[0] r3/z1 1: 10.0.0.5; [1] r2/z1 1: 10.0.0.4", "",
		},
		"failover from another region": {
			lb(`"failover": [{"from": "r9", "to": "r3"}]`), []string{far, farther}, "[0] r2/z1 1: 10.0.0.4; [0] r3/z1 1: 10.0.0.5", "",
		},
		"failoverPriority, by its value": {
			lb(`"failoverPriority": ["track=stable"]`),
			[]string{"10.0.0.1 r1/z1/s1", "10.0.0.4 r2/z1 track=stable"},
			"[0] r2/z1 1: 10.0.0.4; [1] r1/z1/s1 1: 10.0.0.1", "",
		},
		"failoverPriority, a later label counts after an earlier": {
			lb(`"failoverPriority": ["a=1", "b=1"]`),
			[]string{"10.0.0.1 a=1 b=1", "10.0.0.2 a=1", "10.0.0.3 b=1", "10.0.0.4"},
			"[0] 1: 10.0.0.1; [1] 1: 10.0.0.2; [2] 2: 10.0.0.3 10.0.0.4", "",
		},
		"failoverPriority, the proxy's region": {
			lb(`"failoverPriority": ["topology.kubernetes.io/region"]`),
			[]string{here, region, far},
			"[0] r1/z1/s1 1: 10.0.0.1; [0] r1/z2 1: 10.0.0.3; [1] r2/z1 1: 10.0.0.4", "",
		},
		"failoverPriority with failover": {
			lb(`"failoverPriority": ["a=1"], "failover": [{"from": "r1", "to": "r3"}]`),
			[]string{"10.0.0.4 r2/z1 a=1", "10.0.0.5 r3/z1 a=1", here},
			"[0] r3/z1 1: 10.0.0.5; [1] r2/z1 1: 10.0.0.4; [2] r1/z1/s1 1: 10.0.0.1", "",
		},
		"distribute": {
			lb(`"distribute": [{"from": "r1/*", "to": {"r1/*": 80, "r2/*": 20}}]`),
			[]string{here, region, far, farther},
			"[0] r1/z1/s1 40000: 10.0.0.1; [0] r1/z2 40000: 10.0.0.3; [0] r2/z1 20000: 10.0.0.4", `are distributed over other localities than "r3/z1"`,
		},
		"distribute, in proportion to the endpoints": {
			lb(`"distribute": [{"from": "r1/*", "to": {"r1/*": 100}}]`),
			[]string{here + " *3", region},
			"[0] r1/z1/s1 75000: 10.0.0.1*3; [0] r1/z2 25000: 10.0.0.3", "",
		},
		"distribute.to, the most exact first": {
			lb(`"distribute": [{"from": "r1/*", "to": {"r1/*": 10, "r1/z1/*": 90}}]`),
			[]string{here, region},
			"[0] r1/z1/s1 90000: 10.0.0.1; [0] r1/z2 10000: 10.0.0.3", "",
		},
		"distribute.to is 0": {
			lb(`"distribute": [{"from": "r1/*", "to": {"r1/*": 100, "r2/*": 0}}]`), []string{here, far}, "[0] r1/z1/s1 100000: 10.0.0.1", `other localities than "r2/z1"`,
		},
		"distribute.from elsewhere": {
			lb(`"distribute": [{"from": "r9/*", "to": {"r2/*": 100}}]`), []string{here, far}, "[0] r1/z1/s1 1: 10.0.0.1; [0] r2/z1 1: 10.0.0.4", "",
		},
		"zoneAwareLbSetting": {zones(``), []string{here, region, far}, "[0] r1/z1/s1 1: 10.0.0.1; [0] r1/z2 1: 10.0.0.3; [1] r2/z1 1: 10.0.0.4", ""},
		"zoneAwareLbSetting.failover": {
			zones(`"failover": [{"from": "r1", "to": "r3"}]`),
			[]string{here, far, farther},
			"[0] r1/z1/s1 1: 10.0.0.1; [1] r3/z1 1: 10.0.0.5; [2] r2/z1 1: 10.0.0.4", "",
		},
		"zoneAwareLbSetting.enabled is false": {zones(`"enabled": false`), []string{here, far}, "[0] r1/z1/s1 1: 10.0.0.1; [0] r2/z1 1: 10.0.0.4", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := shop(t, test.policy, test.endpoints...).View(t, near("r1/z1/s1"))
			if got := assigned(t, v); got != test.want {
				t.Errorf("the endpoints are\n%s\nwant\n%s", got, test.want)
			}
			if got := noted(v); (got == "") != (test.noted == "") || !strings.Contains(got, test.noted) {
				t.Errorf("it says %q, want %q", got, test.noted)
			}
		})
	}
}

// TestOrderOfTheMesh: what the settings of the mesh and the service say where no rule has a setting of its own.
func TestOrderOfTheMesh(t *testing.T) {
	const near1, far, even = "10.0.0.1 r1/z1", "10.0.0.4 r2/z1", "[0] r1/z1 1: 10.0.0.1; [0] r2/z1 1: 10.0.0.4"
	const ordered, outlier = "[0] r1/z1 1: 10.0.0.1; [1] r2/z1 1: 10.0.0.4", `"outlierDetection": {"consecutive5xxErrors": 3}`
	yes, no := true, false
	for name, test := range map[string]struct {
		policy  string
		enabled *bool
		share   map[string]uint32
		close   string
		want    string
	}{
		"localityLbSetting.enabled":                        {enabled: &yes, want: ordered},
		"localityLbSetting.enabled is false":               {policy: outlier, enabled: &no, want: even},
		"a rule's own setting":                             {policy: outlier + `, "loadBalancer": {"localityLbSetting": {}}`, enabled: &no, want: ordered},
		"localityLbSetting.distribute":                     {share: map[string]uint32{"r2/*": 100}, want: "[0] r2/z1 100000: 10.0.0.4"},
		"localityLbSetting.distribute, and its own":        {policy: outlier + `, "loadBalancer": {"localityLbSetting": {}}`, share: map[string]uint32{"r2/*": 100}, want: ordered},
		"trafficDistribution":                              {close: "PreferClose", want: ordered},
		"trafficDistribution, enabled is false":            {close: "PreferSameZone", enabled: &no, want: ordered},
		"trafficDistribution, of a name that nobody knows": {close: "Far", policy: outlier, enabled: &no, want: even},
	} {
		t.Run(name, func(t *testing.T) {
			m := shop(t, test.policy, near1, far)
			m.Services[0].TrafficDistribution = test.close
			m.Settings = &federation.MeshSettings{}
			m.Settings.LocalityLoadBalancing.Enabled = test.enabled
			if test.share != nil {
				m.Settings.LocalityLoadBalancing.Distribute = []federation.LocalityShares{{From: "r1/*", To: test.share}}
			}
			if got := assigned(t, m.View(t, near("r1/z1"))); got != test.want {
				t.Errorf("the endpoints are %q, want %q", got, test.want)
			}
		})
	}
}

// TestProxiesWithoutLocality: their endpoints have no order, but labels give one.
func TestProxiesWithoutLocality(t *testing.T) {
	const outlier = `"outlierDetection": {"consecutive5xxErrors": 3}`
	for policy, want := range map[string]string{
		outlier: "[0] 1: 10.0.0.9; [0] r1/z1 1: 10.0.0.1; [0] r2/z1 1: 10.0.0.4",
		outlier + `, "loadBalancer": {"localityLbSetting": {"failoverPriority": ["a=1"]}}`: "[0] r2/z1 1: 10.0.0.4; [1] 1: 10.0.0.9; [1] r1/z1 1: 10.0.0.1",
	} {
		if got := assigned(t, shop(t, policy, "10.0.0.9", "10.0.0.1 r1/z1", "10.0.0.4 r2/z1 a=1").View(t, near(""))); got != want {
			t.Errorf("with {%s} the endpoints are %q, want %q", policy, got, want)
		}
	}
}

// TestClusterLocalHosts: MeshSettings.clusterLocalHosts and Kubernetes' own are served by the proxy's cluster alone.
func TestClusterLocalHosts(t *testing.T) {
	const both, own = "[0] 2: 10.0.0.1 10.0.0.2", "[0] 1: 10.0.0.1"
	for name, test := range map[string]struct {
		hosts   []string
		cluster federation.ClusterID
		want    string
	}{
		"the host":      {[]string{webHost}, "c1", own},
		"a wildcard":    {[]string{"*.shop.svc.cluster.local"}, "c1", own},
		"of no cluster": {[]string{webHost}, "", both},
	} {
		m := shop(t, "", "10.0.0.1")
		other := m.Services[0]
		other.Cluster = "c2"
		other.Endpoints = []federation.Endpoint{endpointOf(t, other.Ports[0], "10.0.0.2")}
		m.Services = append(m.Services, other)
		m.Settings = &federation.MeshSettings{ClusterLocalHosts: test.hosts}
		f := near("")
		f.Cluster = test.cluster
		v := m.View(t, f)
		if got := assigned(t, v); got != test.want {
			t.Errorf("%s: the endpoints are %q, want %q", name, got, test.want)
		}
		if (len(v.Reasons) == 1) != (test.want == own) {
			t.Errorf("%s: it says %q", name, noted(v))
		}
	}
}
