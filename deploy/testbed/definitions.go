package testbed

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// Definitions are the CustomResourceDefinitions of a packed file, as JSON: those of the names,
// or all where none is named.
func Definitions(t testing.TB, packed string, names ...string) []string {
	t.Helper()
	file, err := os.Open(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []json.RawMessage
	if err := json.NewDecoder(unpacked).Decode(&list); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, text := range list {
		var named struct{ Metadata struct{ Name string } }
		if err := json.Unmarshal(text, &named); err != nil {
			t.Fatal(err)
		}
		if len(names) == 0 || slices.Contains(names, named.Metadata.Name) {
			found = append(found, string(text))
		}
	}
	return found
}

// ClusterProfiles is a CustomResourceDefinition of ClusterProfiles (KEP-4322), as far as the hub reads them.
const ClusterProfiles = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusterprofiles.multicluster.x-k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes/enhancements/tree/master/keps/sig-multicluster/4322-cluster-inventory"}
spec:
  group: multicluster.x-k8s.io
  scope: Namespaced
  names: {kind: ClusterProfile, plural: clusterprofiles, singular: clusterprofile, listKind: ClusterProfileList}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
