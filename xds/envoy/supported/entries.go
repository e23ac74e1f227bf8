package supported

import "isthmus.dev/isthmus/federation"

// Objects of these kinds become services and workloads of the mesh, and proxies get those. The
// hub registers workloads by WorkloadGroups.
var (
	_ = add(row{kind: federation.ServiceEntryKind, merged: true, table: &table{fields: []string{
		"hosts", "addresses", "ports", "location", "resolution", "endpoints", "workloadSelector", "exportTo", "subjectAltNames",
	}}})
	_ = add(row{kind: federation.WorkloadEntryKind, merged: true, table: &table{fields: []string{
		"address", "ports", "labels", "network", "locality", "weight", "serviceAccount",
	}}})
	_ = add(row{kind: federation.WorkloadGroupKind, merged: true, table: &table{
		hub:     []string{"metadata", "template"},
		refused: map[string]string{"probe": "the hub sends no probes: write it as readinessProbe into PROXY_CONFIG of the agent, which reports the result"},
	}})
)
