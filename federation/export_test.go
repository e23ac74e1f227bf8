package federation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	exportedHost   = "web.ns.svc.cluster.local"
	clusterSetHost = "web.ns.svc.clusterset.local"
)

// export is the ServiceExport web of the namespace ns in the cluster; empty: of all.
func export(cluster ClusterID, day int) *Object {
	return &Object{
		Key:     ObjectKey{Group: multiClusterGroup, Kind: "ServiceExport", Namespace: "ns", Name: "web", Cluster: cluster},
		Created: time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC),
	}
}

func objectsEdit(set ...*Object) Edit {
	e := Edit{Source: ShardKey{Provider: Operator}, Objects: Delta[ObjectKey, *Object]{Set: map[ObjectKey]*Object{}}}
	for _, o := range set {
		e.Objects.Set[o.Key] = o
	}
	return e
}

// drawExport draws a change of ServiceExports.
func drawExport(t *rapid.T, to *Delta[ObjectKey, *Object]) {
	o := export(rapid.SampledFrom([]ClusterID{"", "c1", "c2"}).Draw(t, "exporting"), rapid.IntRange(1, 3).Draw(t, "day"))
	switch rapid.IntRange(0, 3).Draw(t, "export") {
	case 0, 1:
		if to.Set == nil {
			to.Set = map[ObjectKey]*Object{}
		}
		to.Set[o.Key] = o
	case 2:
		to.Gone = append(to.Gone, o.Key)
	}
}

func reports(cluster, host string, shard *Shard) Edit {
	return set(shardOf(cluster), map[ServiceKey]*Shard{key(host, "ns"): shard})
}

// exportsOf tells of the exported service: the endpoints, then the ports.
func exportsOf(s *Snapshot) string {
	svc, ok := s.Service(key(clusterSetHost, "ns"))
	if !ok {
		return "nothing"
	}
	var parts []string
	for _, group := range svc.Endpoints {
		for _, e := range group.Endpoints {
			parts = append(parts, fmt.Sprintf("%s@%s", e.Address, group.Shard.Cluster))
		}
	}
	for _, p := range svc.Ports {
		parts = append(parts, fmt.Sprintf("%s=%d", p.Name, p.Number))
	}
	return strings.Join(parts, " ")
}

// TestN01ExportedServices: the exported service has the endpoints of exporting clusters and no others.
func TestN01ExportedServices(t *testing.T) {
	one, two, three := export("c1", 2), export("c2", 1), export("", 3)
	plain := func(address string) *Shard { return web("10.96.0.1", endpoint(address, 8080)) }
	external := web("", endpoint("10.9.0.1", 8080))
	s := Empty()
	for _, step := range []struct {
		what string
		edit Edit
		want string
	}{
		{"an export without a service", objectsEdit(one), "nothing"},
		{"its service comes", reports("c1", exportedHost, plain("10.1.0.1")), "10.1.0.1@c1 http=80"},
		{"a cluster that does not export", reports("c2", exportedHost, plain("10.2.0.1")), "10.1.0.1@c1 http=80"},
		{"it exports, and is older", objectsEdit(two), "10.2.0.1@c2 10.1.0.1@c1 http=80"},
		{"an endpoint moves", reports("c2", exportedHost, plain("10.2.0.2")), "10.2.0.2@c2 10.1.0.1@c1 http=80"},
		{"a ServiceEntry of the name", Edit{
			Source:   ShardKey{Cluster: "hub", Provider: External},
			Services: Delta[ServiceKey, *Shard]{Set: map[ServiceKey]*Shard{key(exportedHost, "ns"): external}},
		}, "10.2.0.2@c2 10.1.0.1@c1 http=80"},
		{
			"an export ends",
			Edit{Source: ShardKey{Provider: Operator}, Objects: Delta[ObjectKey, *Object]{Gone: []ObjectKey{one.Key}}},
			"10.2.0.2@c2 http=80",
		},
		{"one for all clusters, which counts before those of clusters", objectsEdit(three), "10.1.0.1@c1 10.2.0.2@c2 http=80"},
		{
			"a cluster is detached",
			Edit{Source: ShardKey{Provider: Operator}, Clusters: Delta[ClusterID, ClusterSpec]{Gone: []ClusterID{"c1"}}},
			"10.2.0.2@c2 http=80",
		},
		{
			"all exports end",
			Edit{Source: ShardKey{Provider: Operator}, Objects: Delta[ObjectKey, *Object]{Gone: []ObjectKey{two.Key, three.Key}}},
			"nothing",
		},
	} {
		s, _ = Next(s, step.edit)
		if got := exportsOf(s); got != step.want {
			t.Errorf("%s: the exported service has %q, want %q", step.what, got, step.want)
		}
	}
}

// TestN02TheOldestExportDecides: exports that differ are in conflict, and the oldest wins.
func TestN02TheOldestExportDecides(t *testing.T) {
	number, kind := web("10.96.0.1", endpoint("10.2.0.1", 8080)), web("", endpoint("10.3.0.1", 8080))
	number.Ports[0].Number = 81
	kind.Resolution = Passthrough
	s := after(
		Edit{
			Source:   ShardKey{Provider: Operator},
			Clusters: Delta[ClusterID, ClusterSpec]{Set: map[ClusterID]ClusterSpec{"c3": {Provider: Kubernetes, Precedence: 1}}},
		},
		reports("c1", exportedHost, web("10.96.0.1", endpoint("10.1.0.1", 8080))),
		reports("c2", exportedHost, number), reports("c3", exportedHost, kind),
		objectsEdit(export("c1", 1), export("c2", 2), export("c3", 3)))
	svc, _ := s.Service(key(clusterSetHost, "ns"))
	if svc.Resolution != ClientSideLB || exportsOf(s) != "10.1.0.1@c1 10.2.0.1@c2 10.3.0.1@c3 http=80" {
		t.Errorf("the service is %s and has %s", svc.Resolution, exportsOf(s))
	}
	for cluster, want := range map[ClusterID]string{
		"c1": "Valid=true Valid, Ready=true Exported, Conflict=true PortConflict,TypeConflict",
		"c2": "Valid=true Valid, Ready=true Exported, Conflict=true PortConflict",
		"c3": "Valid=true Valid, Ready=true Exported, Conflict=true TypeConflict",
	} {
		if got := conditionsOf(s, export(cluster, 1).Key); got != want {
			t.Errorf("the export of %s has %q, want %q", cluster, got, want)
		}
	}
}

// TestG78ExportsOfDifferentAffinityConflict: the message names the field and the clusters.
// Services that are not exported may differ, and for headless ones the fields mean nothing.
func TestG78ExportsOfDifferentAffinityConflict(t *testing.T) {
	stays := func(seconds uint32, of Resolution) *Shard {
		s := web("10.96.0.1", endpoint("10.1.0.1", 8080))
		s.Affinity.Seconds, s.Resolution = seconds, of
		return s
	}
	for _, c := range []struct {
		one, two *Shard
		want     string
	}{
		{
			stays(0, ClientSideLB), stays(60, ClientSideLB),
			"SessionAffinityConflict: the oldest export decides: sessionAffinity is ClientIP in c2 and None in c1",
		},
		{
			stays(600, ClientSideLB), stays(60, ClientSideLB),
			"SessionAffinityConfigConflict: the oldest export decides: sessionAffinityConfig.clientIP.timeoutSeconds is 60 in c2 and 600 in c1",
		},
		{stays(60, ClientSideLB), stays(60, ClientSideLB), "NoConflicts: " + noConflict.Message},
		{stays(0, Passthrough), stays(60, Passthrough), "NoConflicts: " + noConflict.Message},
	} {
		s := after(reports("c1", exportedHost, c.one), reports("c2", exportedHost, c.two), objectsEdit(export("c1", 2), export("c2", 1)))
		for _, cluster := range []ClusterID{"c1", "c2"} {
			status := ExportStatusOf(s.Read(), export(cluster, 1).Key)[0].Condition(ConditionConflict)
			if got := status.Reason + ": " + status.Message; got != c.want {
				t.Errorf("the export of %s has %q, want %q", cluster, got, c.want)
			}
		}
		if svc, _ := s.Service(key(exportedHost, "ns")); len(svc.Conflicts) > 0 {
			t.Errorf("the services themselves are in conflict: %v", svc.Conflicts)
		}
	}
}

func conditionsOf(s *Snapshot, export ObjectKey) string {
	var parts []string
	for _, status := range ExportStatusOf(s.Read(), export) {
		for _, c := range status.Conditions {
			parts = append(parts, fmt.Sprintf("%s=%t %s", c.Type, c.Status, c.Reason))
		}
	}
	return strings.Join(parts, ", ")
}

// TestN03ConditionsOfAnExport: what cannot be exported says why.
func TestN03ConditionsOfAnExport(t *testing.T) {
	alias := web("")
	alias.ExternalName = "example.com"
	plain := web("", endpoint("10.1.0.1", 8080))
	for _, c := range []struct {
		what   string
		edits  []Edit
		export ObjectKey
		want   string
	}{
		{"no service", nil, export("c1", 1).Key, "Valid=false NoService, Ready=false Failed, Conflict=false NoConflicts"},
		{
			"a service of another cluster",
			[]Edit{reports("c2", exportedHost, plain)},
			export("c1", 1).Key,
			"Valid=false NoService, Ready=false Failed, Conflict=false NoConflicts",
		},
		{
			"an ExternalName",
			[]Edit{reports("c1", exportedHost, alias)},
			export("c1", 1).Key,
			"Valid=false InvalidServiceType, Ready=false Failed, Conflict=false NoConflicts",
		},
		{
			"not yet",
			[]Edit{reports("c1", exportedHost, plain)},
			export("c1", 1).Key,
			"Valid=true Valid, Ready=false Pending, Conflict=false NoConflicts",
		},
		{
			"exported",
			[]Edit{reports("c1", exportedHost, plain), objectsEdit(export("c1", 1))},
			export("c1", 1).Key,
			"Valid=true Valid, Ready=true Exported, Conflict=false NoConflicts",
		},
		{
			"all clusters",
			[]Edit{reports("c1", exportedHost, plain), objectsEdit(export("", 1))},
			export("", 1).Key,
			"Valid=true Valid, Ready=true Exported, Conflict=false NoConflicts",
		},
	} {
		if got := conditionsOf(after(c.edits...), c.export); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// TestN01ExportsAreNoObjectsForProxies: exports do not have proxies of a cluster built for apart.
func TestN01ExportsAreNoObjectsForProxies(t *testing.T) {
	s := after(objectsEdit(export("c1", 1)))
	if s.Objects().HasOf("c1") {
		t.Error("a ServiceExport of c1 counts as an object for its proxies alone")
	}
}
