package validation

import (
	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation/config/schema"
)

// WorkloadEntry checks a spec of the kind.
func WorkloadEntry(_ string, w *api.WorkloadEntry) []Problem { return workload(spec, w) }

var workloadRules = []rule[*api.WorkloadEntry]{
	{"address", schema.Required, func(w *api.WorkloadEntry) string {
		return when(w.GetAddress() == "" && w.GetNetwork() == "",
			"write the address; only a workload of a network whose gateways lead to it needs none")
	}},
	{"address", schema.Invalid, func(w *api.WorkloadEntry) string {
		switch address := w.GetAddress(); {
		case address == "" || isAddress(address):
			return ""
		case isSocket(address):
			return unixSocket(address)
		default:
			return when(hostname(address) != "", "%q is neither an IP address, a DNS name nor a unix:// socket", address)
		}
	}},
	{"ports", schema.Forbidden, func(w *api.WorkloadEntry) string {
		return when(isSocket(w.GetAddress()) && len(w.GetPorts()) > 0, "a unix:// socket has no ports: remove them")
	}},
}

func workload(at path, w *api.WorkloadEntry) []Problem {
	found := apply(at, w, workloadRules)
	found = append(found, labels(at.field("labels"), w.GetLabels())...)
	return append(found, entries(at.field("ports"), w.GetPorts(), func(at path, name string, number uint32) []Problem {
		return invalid(at, either(label(name), port(number)))
	})...)
}
