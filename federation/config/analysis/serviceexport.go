package analysis

import "isthmus.dev/isthmus/federation"

// The codes of findings about exports of services.
const (
	ExportNotValid = "EXPORT_NOT_VALID"
	ExportConflict = "EXPORT_CONFLICT"
)

// ServiceExport reports where the export has no effect, and where exports of the service
// differ.
func ServiceExport(r *References) {
	for _, status := range federation.ExportStatusOf(r.reader, r.object.Key) {
		in := ""
		if status.Cluster != "" {
			in = "cluster " + string(status.Cluster) + ": "
		}
		if c := status.Condition(federation.ConditionValid); !c.Status {
			r.Add(ExportNotValid, "metadata.name", "%s%s (%s)", in, c.Message, c.Reason)
		}
		if c := status.Condition(federation.ConditionConflict); c.Status {
			r.Add(ExportConflict, "metadata.name", "%s%s (%s)", in, c.Message, c.Reason)
		}
	}
}
