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
		key, workload, problems := external.Workload(external.Instance{
			Key: d.Key, Labels: d.Labels, Spec: s, Reported: annotated(d.Manifest, federation.HealthReportsAnnotation),
		})
		if workload != nil && annotated(d.Manifest, federation.UnhealthyAnnotation) {
			workload.Health = federation.Unhealthy
		}
		return Meaning{WorkloadKey: key, Workload: workload, Problems: problems, WithoutSpec: true}
	},
	contributes: &federation.DeclaresWorkload,
	check:       validation.WorkloadEntry,
	columns:     []Column{{"ADDRESS", "spec.address"}, {"NETWORK", "spec.network"}},
})

// annotated reports whether the manifest has the annotation. Manifests of others are not decoded
// for it.
func annotated(manifest []byte, annotation string) bool {
	if !bytes.Contains(manifest, []byte(annotation)) {
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
	_, said := d.Metadata.Annotations[annotation]
	return said
}
