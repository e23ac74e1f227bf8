package kind

import (
	"bytes"
	"encoding/json"

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
		key, workload, problems := external.Workload(external.Instance{Key: d.Key, Labels: d.Labels, Spec: s})
		if workload != nil && unhealthy(d.Manifest) {
			workload.Health = federation.Unhealthy
		}
		return Meaning{WorkloadKey: key, Workload: workload, Problems: problems, WithoutSpec: true}
	},
	contributes: &federation.DeclaresWorkload,
	check:       validation.WorkloadEntry,
	columns:     []Column{{"ADDRESS", "spec.address"}, {"NETWORK", "spec.network"}},
})

// unhealthy reports whether the manifest has the annotation that keeps requests from the
// workload. Manifests of others are not decoded for it.
func unhealthy(manifest []byte) bool {
	if !bytes.Contains(manifest, []byte(federation.UnhealthyAnnotation)) {
		return false
	}
	var d struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if json.Unmarshal(manifest, &d) != nil {
		return false
	}
	_, said := d.Metadata.Annotations[federation.UnhealthyAnnotation]
	return said
}
