package wanted

import "isthmus.dev/isthmus/federation"

// ofExport is the status of a ServiceExport in its cluster, as KEP-1645 has it.
func ofExport(m Mesh, o Object) *Status {
	if o.Hidden != "" {
		return nil
	}
	key, s := o.Key, &Status{}
	key.Cluster = o.Cluster
	for _, of := range federation.ExportStatusOf(m.Read, key) {
		for _, c := range of.Conditions {
			s.Conditions = append(s.Conditions, Condition{Type: c.Type, Status: truth(c.Status), Reason: c.Reason, Message: cut(c.Message)})
		}
	}
	return s
}
