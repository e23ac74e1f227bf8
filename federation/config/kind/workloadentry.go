package kind

import (
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
		return Meaning{WorkloadKey: key, Workload: workload, Problems: problems, WithoutSpec: true}
	},
	contributes: &federation.DeclaresWorkload,
	check:       validation.WorkloadEntry,
	columns:     []Column{{"ADDRESS", "spec.address"}, {"NETWORK", "spec.network"}},
})
