package kind

import (
	"bytes"
	"encoding/json"
	"strconv"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/external"
	"isthmus.dev/isthmus/federation/config/validation"
)

// WorkloadEntry is the kind of workloads outside of every attached cluster.
var WorkloadEntry = federation.Kind{Group: networkingGroup, Name: "WorkloadEntry"}

var _ = add(of[networking.WorkloadEntry]{
	kind: WorkloadEntry,
	translate: func(d Decoded, s *networking.WorkloadEntry) Meaning {
		reported := reportsHealth(d.Manifest)
		key, workload, problems := external.Workload(external.Instance{Key: d.Key, Labels: d.Labels, Spec: s, Reported: reported})
		m := Meaning{WorkloadKey: key, Workload: workload, Problems: problems, WithoutSpec: true}
		if workload == nil {
			return m
		}
		if _, unhealthy := annotation(d.Manifest, federation.UnhealthyAnnotation); unhealthy {
			workload.Health = federation.Unhealthy
		} else {
			m.AwaitsHealth = reported && len(workload.Addresses) > 0
		}
		return m
	},
	contributes: &federation.DeclaresWorkload,
	check:       validation.WorkloadEntry,
	columns:     []Column{{"ADDRESS", "spec.address"}, {"NETWORK", "spec.network"}},
})

// reportsHealth reports whether reports of a proxy about the health of the workload count. Like Istio, the hub takes
// what is no boolean for false.
func reportsHealth(manifest []byte) bool {
	said, _ := annotation(manifest, federation.HealthReportsAnnotation)
	reports, _ := strconv.ParseBool(said)
	return reports
}

// annotation is the value of the manifest's annotation, if it has that. Other manifests are not decoded for it.
func annotation(manifest []byte, name string) (value string, exists bool) {
	if !bytes.Contains(manifest, []byte(name)) {
		return "", false
	}
	var d struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if json.Unmarshal(manifest, &d) != nil {
		return "", false
	}
	value, exists = d.Metadata.Annotations[name]
	return value, exists
}
