package get

import (
	"strings"
	"testing"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/output"
)

// TestABackupOfClustersIsForAnyHub: the version of a Cluster's credentials means nothing to
// another hub, which refuses a manifest that has it.
func TestABackupOfClustersIsForAnyHub(t *testing.T) {
	for annotations, want := range map[string]string{
		`{"isthmus.dev/credentials":"V1"}`:              `{"name":"c1"}`,
		`{"isthmus.dev/credentials":"V1","owner":"me"}`: `{"annotations":{"owner":"me"},"name":"c1"}`,
		`{"owner":"me"}`:                                `{"annotations":{"owner":"me"},"name":"c1"}`,
	} {
		got, err := objectItem(client.ObjectSummary{
			Group: "isthmus.dev", Kind: "Cluster", Name: "c1",
			Json: `{"kind":"Cluster","metadata":{"name":"c1","annotations":` + annotations + `}}`,
		})
		if err != nil {
			t.Fatal(err)
		}
		if text := output.JSON(got.value["metadata"], ""); strings.TrimSpace(text) != want {
			t.Errorf("the metadata with the annotations %s is %s, want %s", annotations, text, want)
		}
	}
}
