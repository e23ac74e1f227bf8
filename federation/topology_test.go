package federation

import (
	"maps"
	"testing"
)

// TestG115LabelsOfTopologySayWhereSomethingIs: they come before labels of the same key, which count
// where the topology is unknown, and cost nothing where nothing asks for them.
func TestG115LabelsOfTopologySayWhereSomethingIs(t *testing.T) {
	own := map[string]string{"app": "web", LabelCluster: "liar", LabelZone: "eu-9"}
	group := ShardEndpoints{Shard: ShardKey{Cluster: "east"}}
	e := &Endpoint{Labels: own, Locality: Locality{Region: "eu", SubZone: "rack"}}
	at := group.TopologyOf(e)
	for key, want := range map[string]string{
		"app": "web", LabelCluster: "east", LabelNetwork: string(DefaultNetwork), LabelRegion: "eu", LabelZone: "eu-9", LabelSubZone: "rack",
	} {
		if got, has := at.Label(own, key); got != want || !has {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
		if !group.HasLabels(e, map[string]string{key: want, "app": "web"}) || group.HasLabels(e, map[string]string{key: want + "x"}) {
			t.Errorf("an endpoint with %s=%s is selected otherwise", key, want)
		}
	}
	if _, has := at.Label(own, "kubernetes.io/hostname"); has {
		t.Error("there is a label that nothing has")
	}
	e.Cluster, e.Network = "west", "n2"
	if !group.HasLabels(e, map[string]string{LabelCluster: "west", LabelNetwork: "n2"}) {
		t.Error("an endpoint of another cluster has the labels of the shard's")
	}
	got := at.Labels(own, []string{"app", "none", LabelCluster, LabelZone})
	if want := map[string]string{"app": "web", LabelCluster: "east", LabelZone: "eu-9"}; !maps.Equal(got, want) || own[LabelCluster] != "liar" {
		t.Errorf("the labels are %v, want %v; the own ones are %v", got, want, own)
	}
	if got := at.Labels(nil, []string{LabelRegion}); got[LabelRegion] != "eu" {
		t.Errorf("without labels of its own it has %v", got)
	}
	if cost := testing.AllocsPerRun(10, func() { at.Labels(own, []string{"app", "version"}) }); cost != 0 {
		t.Errorf("labels that nothing asks for cost %v allocations", cost)
	}
}
