package external

import (
	"maps"
	"net/netip"

	"isthmus.dev/isthmus/federation"
	networking "istio.io/api/networking/v1"
)

// Instance is a WorkloadEntry as it is stored. It is only read.
type Instance struct {
	Key    federation.ObjectKey
	Labels map[string]string
	Spec   *networking.WorkloadEntry
	// WantsReports is the wish that the workload be as healthy as its proxy reports.
	WantsReports bool
}

// Workload is what a WorkloadEntry says about a workload; nil when it cannot be
// used. Labels of the object count beside those of its spec, and before them.
func Workload(i Instance) (federation.WorkloadKey, *federation.Workload, []federation.Problem) {
	key := federation.WorkloadKey{Namespace: i.Key.Namespace, Name: i.Key.Name}
	n := problemsOf(i.Key)
	address, ok := readAddress(i.Spec, "spec", n)
	if !ok {
		return key, nil, n.All()
	}
	labels := maps.Clone(i.Spec.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, i.Labels)
	w := &federation.Workload{
		Network: network(i.Spec, labels), Locality: federation.ParseLocality(i.Spec.GetLocality()), Labels: labels,
		ServiceAccount: account(i.Spec, i.Key.Namespace), Weight: i.Spec.GetWeight(), TLSMode: tlsMode(i.Spec, labels),
		Ports: workloadPorts(i.Spec, "spec", n),
	}
	if ip, isIP := address.IP(); isIP {
		w.Addresses = []netip.Addr{ip}
	} else {
		w.Host = address
		if i.WantsReports {
			n.Add(federation.CodeNotHonoured, "metadata.annotations",
				"%s has no effect: its agent is known by its IP address, and %s is not an IP address; to keep requests from the workload, set the annotation %s",
				federation.HealthReportsAnnotation, address, federation.UnhealthyAnnotation)
		}
	}
	return key, w, n.All()
}
