package kind

import (
	"bytes"
	"encoding/json"
	"strconv"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/external"
	"isthmus.dev/isthmus/federation/config/validation"
	"isthmus.dev/isthmus/internal/text"
)

// WorkloadEntry is the kind of workloads outside of every attached cluster.
var WorkloadEntry = federation.Kind{Group: networkingGroup, Name: "WorkloadEntry"}

var _ = add(of[networking.WorkloadEntry]{
	kind: WorkloadEntry,
	translate: func(d Decoded, s *networking.WorkloadEntry) Meaning {
		wants := wantsReports(d.Manifest)
		key, workload, problems := external.Workload(external.Instance{Key: d.Key, Labels: d.Labels, Spec: s, WantsReports: wants})
		m := Meaning{WorkloadKey: key, Workload: workload, Problems: problems, WithoutSpec: true}
		if workload == nil {
			return m
		}
		if _, unhealthy := annotation(d.Manifest, federation.UnhealthyAnnotation); unhealthy {
			workload.Health = federation.Unhealthy
		} else {
			m.AwaitsHealth = wants && len(workload.Addresses) > 0
			m.Condition = healthyCondition(d.Manifest)
		}
		return m
	},
	contributes: &federation.DeclaresWorkload,
	check:       validation.WorkloadEntry,
	columns:     []Column{{"ADDRESS", "spec.address"}, {"NETWORK", "spec.network"}},
})

// wantsReports reports whether reports of a proxy about the health of the workload count. As in Istio, a value that is not
// a boolean counts as false.
func wantsReports(manifest []byte) bool {
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

// healthCondition is the type of the condition in which istiod stores what an agent reports.
const healthCondition = "Healthy"

// mostMessage is how many bytes of a condition's message are kept.
const mostMessage = 256

// HealthCondition is that condition of an object.
type HealthCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

// Healthy reports whether the workload is.
func (c HealthCondition) Healthy() bool { return c.Status == "True" }

type conditions struct {
	Conditions []HealthCondition `json:"conditions"`
}

// KeptStatus is what the hub keeps of the status that an object has in its cluster: what changes with each report is
// excluded. Nil: nothing.
func KeptStatus(of federation.Kind, status any) map[string]any {
	if of != WorkloadEntry || status == nil {
		return nil
	}
	var all conditions
	written, err := json.Marshal(status)
	if err != nil || json.Unmarshal(written, &all) != nil {
		return nil
	}
	for _, c := range all.Conditions {
		if c.Type == healthCondition {
			return map[string]any{"conditions": []any{
				map[string]any{"type": c.Type, "status": c.Status, "message": text.Readable(c.Message, mostMessage)},
			}}
		}
	}
	return nil
}

// healthyCondition is that of the manifest; nil: it has none. Only objects of clusters have a status.
func healthyCondition(manifest []byte) *HealthCondition {
	if !bytes.Contains(manifest, []byte(`"status"`)) {
		return nil
	}
	var d struct {
		Status conditions `json:"status"`
	}
	if json.Unmarshal(manifest, &d) != nil || len(d.Status.Conditions) == 0 {
		return nil
	}
	return &d.Status.Conditions[0]
}
