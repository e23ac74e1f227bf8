package get

import (
	"strings"
	"testing"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/resource"
)

// TestAWatchTellsObjectsOfOneNameApart: two clusters have an object of the name that is watched;
// one of them is deleted, and the other one stays.
func TestAWatchTellsObjectsOfOneNameApart(t *testing.T) {
	kind := client.Kind{Group: "networking.istio.io", Kind: "ProxyConfig", Namespaced: true}
	of := resource.Target{Type: resource.Type{Kind: kind}, Names: []resource.Name{{Namespace: "shop", Name: "web"}}}
	for format, want := range map[string][]string{
		"table": {"gone", "crd/east"},
		"json":  {`"clusterID":"east"`, `"type":"DELETED"`},
	} {
		var out strings.Builder
		w := &watcher{io: cmdutil.Streams{Out: &out, Err: &out}, of: of, shown: map[string]item{}}
		w.asked = &getting{output: output.Format{Name: format}, table: &output.Table{To: &out}}
		w.asked.table.Heads = w.asked.cells(of, w.heads(), w.heads().names)
		for _, cluster := range []string{"east", "west"} {
			one, err := objectItem(client.ObjectSummary{
				Group: kind.Group, Kind: kind.Kind, Namespace: "shop", Name: "web", ClusterID: &cluster, Source: client.ConfigSourceKindCrd, Json: "{}",
			})
			if err != nil {
				t.Fatal(err)
			}
			w.shown[one.key], w.only = one, w.name(one)
		}
		east := "east"
		gone := client.ConfigObjectChange{Action: client.ChangeActionDelete}
		gone.Object.Ref = client.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: "shop", Name: "web", ClusterID: &east}
		if err := w.take(client.Event{Change: client.Change{ConfigObjects: []client.ConfigObjectChange{gone}}}); err != nil {
			t.Fatal(err)
		}
		for _, word := range want {
			if !strings.Contains(out.String(), word) {
				t.Errorf("%s: %q is not in\n%s", format, word, &out)
			}
		}
		if len(w.shown) != 1 {
			t.Errorf("%s: there are %d objects, want that of the other cluster", format, len(w.shown))
		}
	}
}
