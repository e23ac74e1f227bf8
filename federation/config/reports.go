package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"isthmus.dev/isthmus/federation"
)

const codeWorkloadUnhealthy = federation.CodeWorkloadUnhealthy

// defaultAccount is that of a WorkloadEntry that names none.
const defaultAccount = "default"

// WorkloadHealthKey names what a proxy reports about the workload of the WorkloadEntry.
func WorkloadHealthKey(of federation.WorkloadKey) federation.ObjectKey {
	return federation.ObjectKey{Group: federation.MeshGroup, Kind: federation.WorkloadHealthKind.Name, Namespace: of.Namespace, Name: of.Name}
}

// NewWorkloadHealth is the object that keeps it.
func NewWorkloadHealth(of federation.WorkloadKey, reported federation.WorkloadHealth) (*Object, error) {
	return newInternal(WorkloadHealthKey(of), reported)
}

// Reportable says whose reports about the health of a WorkloadEntry count.
type Reportable struct {
	Counts    bool         // reports have an effect
	Account   string       // NAMESPACE/NAME
	Addresses []netip.Addr // one of these
	Network   federation.NetworkID
}

// ReportableIn says so of the WorkloadEntry; false: there is none.
func ReportableIn(s *State, of federation.WorkloadKey) (Reportable, bool) {
	h, exists := s.objects.Get(objectSortKey(workloadEntryKey(of)))
	if !exists {
		return Reportable{}, false
	}
	return h.reportable(), true
}

// ReportedIn is what a proxy reports about the workload; nil: none does.
func ReportedIn(s *State, of federation.WorkloadKey) *federation.WorkloadHealth {
	h, _ := s.objects.Get(objectSortKey(WorkloadHealthKey(of)))
	return h.reports()
}

func workloadEntryKey(of federation.WorkloadKey) federation.ObjectKey {
	return federation.WorkloadEntryKind.Key(of.Namespace, of.Name)
}

func (h *held) reportable() Reportable {
	if h.Workload == nil {
		return Reportable{}
	}
	return Reportable{
		Counts: h.AwaitsHealth && len(h.Workload.Addresses) > 0, Account: AccountOf(h.WorkloadKey, h.Workload),
		Addresses: h.Workload.Addresses, Network: cmp.Or(h.Workload.Network, federation.DefaultNetwork),
	}
}

// AccountOf is the account, NAMESPACE/NAME, that the agent of a WorkloadEntry must prove.
func AccountOf(key federation.WorkloadKey, w *federation.Workload) string {
	return cmp.Or(w.ServiceAccount, key.Namespace+"/"+defaultAccount)
}

func (h *held) reports() *federation.WorkloadHealth {
	if h == nil || h.shown == nil {
		return nil
	}
	reported, _ := h.shown.Spec.(*federation.WorkloadHealth)
	return reported
}

// By reports whether a proxy with that account and address is the workload's.
func (r Reportable) By(account string, address netip.Addr) bool {
	return account == r.Account && slices.Contains(r.Addresses, address)
}

// holder has objects by their sort keys.
type holder interface {
	Get(sortKey string) (*held, bool)
}

// contribution is a workload as the mesh sees it, and what keeps requests from it.
func contribution(objects holder, of federation.WorkloadKey) (*federation.Workload, []federation.Problem) {
	entry, exists := objects.Get(objectSortKey(workloadEntryKey(of)))
	switch {
	case !exists:
		return nil, nil
	case !entry.AwaitsHealth:
		return entry.Workload, nil
	}
	found, _ := objects.Get(objectSortKey(WorkloadHealthKey(of)))
	healthy, why := entry.reportedHealth(found.reports())
	if healthy {
		return entry.Workload, nil
	}
	w := *entry.Workload
	w.Health = federation.Unhealthy
	return &w, []federation.Problem{{
		Code: codeWorkloadUnhealthy, Object: title(workloadEntryKey(of)), Field: "metadata.annotations",
		Message: fmt.Sprintf("%s is true, and the workload is not healthy: it gets no requests: %s", federation.HealthReportsAnnotation, why),
	}}
}

// reportedHealth is what is known of the workload's; why is the reason if it is not healthy. Its agent may talk to the istiod of a
// cluster, which stores what it reports in a condition of the object. That of a workload without an IP address can talk to nothing else.
func (h *held) reportedHealth(said *federation.WorkloadHealth) (healthy bool, why string) {
	switch c := h.Condition; {
	case said != nil && h.reportable().By(said.Account, said.Address):
		return said.Unhealthy == "", said.Unhealthy
	case c != nil && c.Message != "":
		return c.Healthy(), "its agent reports to istiod: " + c.Message
	case c != nil && c.Exists():
		return c.Healthy(), "the condition Healthy of its status is not True"
	case len(h.Workload.Addresses) == 0:
		return false, "no agent reports for it to the istiod of its cluster: its status has no condition Healthy"
	}
	return false, "no agent reports for it; its agent needs ISTIO_META_WORKLOAD_ENTRY, a readinessProbe, and the service account and address of the WorkloadEntry"
}

// takeReports makes workloads as healthy as their proxies report.
func (d *draft) takeReports() {
	for key := range d.dirtyWorkloads {
		was, before := contribution(d.base.objects, key)
		now, problems := contribution(&d.objects, key)
		d.complain("health"+nul+key.Namespace+nul+key.Name, before, problems)
		switch {
		case now == nil && was != nil:
			d.workloads.drop(key)
		case now != nil && (was == nil || !was.Equal(now)):
			d.workloads.put(key, now)
		}
	}
}
