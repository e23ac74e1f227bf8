package federationtest

import (
	"net/netip"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
)

// applyNetworks takes the objects that are about networks, and what names of
// gateways stand for.
func (s *Scenario) applyNetworks(t testing.TB) {
	e := federation.Edit{}
	e.Objects.Set = map[federation.ObjectKey]*federation.Object{}
	set := func(key federation.ObjectKey, data []byte, spec any) {
		e.Objects.Set[key] = &federation.Object{Key: key, Digest: string(data), Spec: spec}
	}
	for _, f := range s.archive.Files {
		if id, ok := strings.CutPrefix(f.Name, "networks/"); ok {
			spec := &federation.NetworkObject{}
			decode(t, f.Name, f.Data, spec)
			set(federation.ObjectKey{Group: federation.MeshGroup, Kind: federation.NetworkKind.Name, Name: strings.TrimSuffix(id, ".yaml")}, f.Data, spec)
		}
	}
	if data, ok := s.Section("mesh.yaml"); ok {
		spec := &federation.MeshSettings{}
		decode(t, "mesh.yaml", data, spec)
		set(federation.MeshSettingsKey, data, spec)
	}
	if data, ok := s.Section("names.yaml"); ok {
		e.Resolved.Set = map[federation.Hostname][]netip.Addr{}
		decode(t, "names.yaml", data, &e.Resolved.Set)
	}
	s.operator(e)
}
