package federation

import (
	"slices"
	"testing"
)

// TestG82OnlyWhatSaysNothingFollowsTheDefault: another setting changes the services of which no
// cluster says where they are visible; clusters disagree only if they export the service to different namespaces.
func TestG82OnlyWhatSaysNothingFollowsTheDefault(t *testing.T) {
	follows, own, both := key("follows.shop", "shop"), key("own.shop", "shop"), key("both.shop", "shop")
	visible := func(to ...string) *Shard { s := web(""); s.ExportTo = to; return s }
	s := after(
		set(shardOf("c1"), map[ServiceKey]*Shard{follows: visible(), own: visible("*"), both: visible("*")}),
		set(shardOf("c2"), map[ServiceKey]*Shard{both: visible()}))
	for _, step := range []struct {
		setting, follows []string
		changed          []ServiceKey
		conflict         bool
	}{
		{[]string{"."}, []string{"."}, []ServiceKey{both, follows}, true},
		{[]string{"bank", "."}, []string{".", "bank"}, []ServiceKey{both, follows}, true},
		{[]string{".", "bank"}, []string{".", "bank"}, nil, true},
		{[]string{"~"}, []string{"~"}, []ServiceKey{both, follows}, true},
		{[]string{"*"}, nil, []ServiceKey{both, follows}, false},
		{nil, nil, nil, false},
	} {
		next, _ := Next(s, meshObject(MeshSettings{DefaultServiceExportTo: step.setting}))
		var changed []ServiceKey
		for _, k := range []ServiceKey{both, follows, own} {
			if mustService(t, next, k) != mustService(t, s, k) {
				changed = append(changed, k)
			}
		}
		if !slices.Equal(changed, step.changed) {
			t.Errorf("%q: changed are %v, want %v", step.setting, changed, step.changed)
		}
		if got := mustService(t, next, follows).ExportTo; !slices.Equal(got, step.follows) {
			t.Errorf("%q: exportTo is %q, want %q", step.setting, got, step.follows)
		}
		if mustService(t, next, own).ExportTo != nil {
			t.Errorf("%q: a service follows that says where it is visible", step.setting)
		}
		if got := slices.Contains(conflictsOf(mustService(t, next, both)), ConflictExportTo); got != step.conflict {
			t.Errorf("%q: the clusters disagree: %t", step.setting, got)
		}
		s = next
	}
}
