package federation

import (
	"fmt"
	"slices"
	"strings"
)

// Condition is a condition of an object as Kubernetes has them: type, reason and message
// are those of its API.
type Condition struct {
	Type    string
	Status  bool
	Reason  string
	Message string
}

// The types of the conditions of a ServiceExport.
const (
	ConditionValid    = "Valid"    // there is a service that can be exported
	ConditionReady    = "Ready"    // it is part of the exported service
	ConditionConflict = "Conflict" // exports of the service differ
)

// ExportStatus is the status of a ServiceExport in one cluster.
type ExportStatus struct {
	Cluster    ClusterID // empty: no cluster has the service
	Conditions []Condition
}

// Condition is the condition of that type.
func (s ExportStatus) Condition(of string) Condition {
	i := slices.IndexFunc(s.Conditions, func(c Condition) bool { return c.Type == of })
	return s.Conditions[i]
}

// ExportStatusOf is the status of a ServiceExport: in its own cluster, or in each cluster
// that has the service where it is for all clusters. It is a function of what the reader
// reads: the exported service, and the one of which it is made.
func ExportStatusOf(r *Reader, export ObjectKey) []ExportStatus {
	service, _ := r.Spec(ExportedService(export))
	exported, _ := r.Endpoints(ClusterSetService(export))
	var all []ExportStatus
	for _, id := range clustersOf(service, export.Cluster) {
		all = append(all, exportStatus(id, service, exported))
	}
	return all
}

// clustersOf are the clusters that have the service; only where that is given.
func clustersOf(service *Service, only ClusterID) []ClusterID {
	if only != "" || service == nil {
		return []ClusterID{only}
	}
	var ids []ClusterID
	for source := range service.Shards.All() {
		if !source.Provider.OfConfiguration() && !slices.Contains(ids, source.Cluster) {
			ids = append(ids, source.Cluster)
		}
	}
	if len(ids) == 0 {
		return []ClusterID{""}
	}
	return ids
}

func exportStatus(id ClusterID, service, exported *Service) ExportStatus {
	valid := validExport(id, service)
	s := ExportStatus{Cluster: id, Conditions: []Condition{valid}}
	if !valid.Status {
		ready := Condition{Type: ConditionReady, Reason: "Failed", Message: valid.Message}
		return ExportStatus{Cluster: id, Conditions: append(s.Conditions, ready, noConflict)}
	}
	ready := Condition{Type: ConditionReady, Reason: "Pending", Message: "the hub does not export the service yet"}
	if exported != nil && exported.hasShardOf(id) {
		ready = Condition{Type: ConditionReady, Status: true, Reason: "Exported", Message: "proxies of all clusters know the service as " +
			string(exported.Key.Hostname)}
	}
	return ExportStatus{Cluster: id, Conditions: append(s.Conditions, ready, exportConflict(id, exported))}
}

func validExport(id ClusterID, service *Service) Condition {
	c := Condition{Type: ConditionValid, Reason: "NoService", Message: "the cluster has no Service of this name and namespace: create it"}
	if service == nil {
		return c
	}
	for source, shard := range service.Shards.All() {
		switch {
		case source.Cluster != id || source.Provider.OfConfiguration() || shard.NameOf != "":
		case shard.mayExport(source):
			return Condition{Type: ConditionValid, Status: true, Reason: "Valid", Message: "the Service can be exported"}
		default:
			c.Reason, c.Message = "InvalidServiceType",
				"a Service of the type ExternalName, or of what is outside of the mesh, is not exported: export the service that it names"
		}
	}
	return c
}

var noConflict = Condition{Type: ConditionConflict, Reason: "NoConflicts", Message: "the exports of the service do not differ"}

// exportReasons are the reasons of the Multi-Cluster Services API for disagreements.
var exportReasons = map[ConflictKind]string{
	ConflictPortNumber: "PortConflict", ConflictPortName: "PortConflict", ConflictPortProtocol: "PortConflict",
	ConflictHeadless: "TypeConflict", ConflictResolution: "TypeConflict",
	ConflictAffinity: "SessionAffinityConflict", ConflictAffinityConfig: "SessionAffinityConfigConflict",
}

// exportConflict tells of the disagreements that involve the cluster.
func exportConflict(id ClusterID, exported *Service) Condition {
	var reasons, messages []string
	for _, c := range exported.conflicts() {
		reason, counts := exportReasons[c.Kind]
		if !counts || !slices.Contains(c.Clusters, id) {
			continue
		}
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
		messages = append(messages, c.Message)
	}
	if len(reasons) == 0 {
		return noConflict
	}
	slices.Sort(reasons)
	return Condition{
		Type: ConditionConflict, Status: true, Reason: strings.Join(reasons, ","),
		Message: fmt.Sprintf("the oldest export decides: %s", strings.Join(firstOf(messages, 5), "; ")),
	}
}

func (s *Service) conflicts() []Conflict {
	if s == nil {
		return nil
	}
	return s.Conflicts
}
