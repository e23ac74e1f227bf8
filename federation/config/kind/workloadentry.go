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

var _ = add(of[networking.WorkloadEntry]{
	kind: federation.WorkloadEntryKind,
	translate: func(d Decoded, s *networking.WorkloadEntry) Meaning {
		wants, condition := wantsReports(d.Manifest), healthyCondition(d.Manifest)
		key, workload, problems := external.Workload(external.Instance{
			Key: d.Key, Labels: d.Labels, Spec: s, WantsReports: wants && condition == nil,
		})
		m := Meaning{WorkloadKey: key, Workload: workload, Problems: problems, WithoutSpec: true}
		if workload == nil {
			return m
		}
		if _, unhealthy := annotation(d.Manifest, federation.UnhealthyAnnotation); unhealthy {
			workload.Health = federation.Unhealthy
		} else {
			m.AwaitsHealth = wants && (len(workload.Addresses) > 0 || condition != nil)
			m.Condition = condition
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
	return isTrue(said)
}

func isTrue(said string) bool {
	value, _ := strconv.ParseBool(said)
	return value
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

// HealthCondition is that condition of an object; zero: its status has none.
type HealthCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

// Exists reports whether the status has the condition.
func (c HealthCondition) Exists() bool { return c.Type != "" }

// Healthy reports whether the workload is.
func (c HealthCondition) Healthy() bool { return c.Status == "True" }

type conditions struct {
	Conditions []HealthCondition `json:"conditions"`
}

// KeptStatus is what the hub keeps of the status that an object with these annotations has in its cluster: what changes
// with each report is excluded. Nil: nothing. An empty one says that reports count, and that istiod stores none.
func KeptStatus(of federation.Kind, annotations map[string]string, status any) map[string]any {
	if of != federation.WorkloadEntryKind || !isTrue(annotations[federation.HealthReportsAnnotation]) {
		return nil
	}
	var all conditions
	if written, err := json.Marshal(status); err == nil && json.Unmarshal(written, &all) != nil {
		all = conditions{} // what cannot be read has no condition
	}
	for _, c := range all.Conditions {
		if c.Type == healthCondition {
			return map[string]any{"conditions": []any{
				map[string]any{"type": c.Type, "status": c.Status, "message": text.Readable(c.Message, mostMessage)},
			}}
		}
	}
	return map[string]any{}
}

// healthyCondition is that of the manifest's status; nil: it has no status. Only objects of clusters have one.
func healthyCondition(manifest []byte) *HealthCondition {
	if !bytes.Contains(manifest, []byte(`"status"`)) {
		return nil
	}
	var d struct {
		Status *conditions `json:"status"`
	}
	switch err := json.Unmarshal(manifest, &d); {
	case err != nil || d.Status == nil:
		return nil
	case len(d.Status.Conditions) == 0:
		return &HealthCondition{}
	}
	return &d.Status.Conditions[0]
}
