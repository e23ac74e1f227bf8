package federation

import (
	"cmp"
	"slices"
)

// Normal is the shard as a snapshot keeps it: sorted, with defaults filled in, and
// each endpoint once. One that is so already is returned as it is, so that who made
// it shares it with the snapshot.
func (s *Shard) Normal() *Shard {
	exportTo, endpoints, ports := normalExportTo(s.ExportTo), NormalEndpoints(s.Endpoints), normalPorts(s.Ports)
	if slices.Equal(exportTo, s.ExportTo) && sameSlice(endpoints, s.Endpoints) && sameSlice(ports, s.Ports) {
		return s
	}
	out := *s
	out.ExportTo, out.Endpoints, out.Ports = exportTo, endpoints, ports
	return &out
}

func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func normalPorts(in []Port) []Port {
	if slices.IsSortedFunc(in, comparePorts) && !slices.ContainsFunc(in, func(p Port) bool { return p.Protocol == "" }) {
		return in
	}
	out := slices.Clone(in)
	for i := range out {
		out[i].Protocol = cmp.Or(out[i].Protocol, TCP)
	}
	slices.SortFunc(out, comparePorts)
	return out
}

// normalExportTo is the set in one order; nil says nothing, so that the mesh's default holds.
func normalExportTo(in []string) []string {
	if slices.Contains(in, "*") {
		return []string{"*"}
	}
	return slices.Compact(slices.Sorted(slices.Values(in)))
}
