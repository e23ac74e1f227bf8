package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	mesh "istio.io/api/mesh/v1alpha1"

	"isthmus.dev/isthmus/federation/config/schema"
)

// TestU99EachSettingOfMeshConfigIsInTheGuide: the tables about MeshConfig name each of its fields, and nothing that it does not have.
// MeshSettings have a field of the same name where the tables say so, and only there.
func TestU99EachSettingOfMeshConfigIsInTheGuide(t *testing.T) {
	fields := meshSettingsFields(t)
	_, section, _ := strings.Cut(read(t, "move-from-istio.md"), "\n| MeshConfig | MeshSettings |\n")
	section, _, _ = strings.Cut(section, "\n## ")
	said := map[string]string{} // by name of the field
	name := regexp.MustCompile("`([A-Za-z0-9]+)(?:: [^`]*)?`")
	for line := range strings.Lines(section) {
		if cells := cellsOf(line); strings.HasPrefix(line, "| `") && len(cells) == 2 {
			for _, found := range name.FindAllStringSubmatch(cells[0], -1) {
				said[found[1]] = cells[1]
			}
		}
	}
	of := (&mesh.MeshConfig{}).ProtoReflect().Descriptor().Fields()
	for i := range of.Len() {
		field := of.Get(i).JSONName()
		says, listed := said[field]
		if !listed {
			t.Errorf("the guide does not say what %s of MeshConfig is with the hub", field)
			continue
		}
		delete(said, field)
		same := strings.HasPrefix(strings.TrimSpace(says), "the same name")
		if has := slices.ContainsFunc(fields, func(f schema.Field) bool { return f.Name == field }); has != same {
			t.Errorf("MeshSettings have %s: %t, but the guide says %q", field, has, says)
		}
	}
	for field := range said {
		t.Errorf("the guide says what %s is with the hub, but MeshConfig does not have it", field)
	}
}
