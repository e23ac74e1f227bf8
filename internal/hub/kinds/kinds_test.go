package kinds

import (
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/registries/consul"
	"isthmus.dev/isthmus/registries/kubernetes"
)

// TestClusterObjectsNameNoFiles: what a Cluster object has beside its schema, such as a
// path on the hub's machine, is not read.
func TestClusterObjectsNameNoFiles(t *testing.T) {
	const manifest = `{"spec": {"provider": "Kubernetes", "trustDomain": "other", "id": "x", "precedence": 3,
  "kubernetes": {"kubeconfig": "/etc/passwd", "context": "c", "secrets": true},
  "consul": {"address": "http://192.0.2.1:8500", "tokenFile": "/etc/passwd", "tls": {"ca": "/etc/passwd"}, "servicePort": 80}}}`
	c, err := OfObject(&config.Object{Key: federation.ObjectKey{Name: "a"}, Manifest: []byte(manifest)})
	if err != nil {
		t.Fatal(err)
	}
	if c.ID != "a" || c.TrustDomain != "" || *c.Precedence != 3 {
		t.Errorf("it is %+v", c)
	}
	if got, want := *c.Kubernetes, (kubernetes.Section{Context: "c"}); got != want {
		t.Errorf("its section is %+v, want %+v", got, want)
	}
	if got, want := *c.Consul, (consul.Section{Address: "http://192.0.2.1:8500", ServicePort: 80}); got != want {
		t.Errorf("its section is %+v, want %+v", got, want)
	}
}

// TestEveryKindHasItsSection: the list of kinds and the config file agree.
func TestEveryKindHasItsSection(t *testing.T) {
	config := Cluster{Kubernetes: &kubernetes.Section{}, Consul: &consul.Section{}}
	for _, k := range All(Hub{}) {
		if got := config.Section(k.Provider) != nil; got != k.HasSection {
			t.Errorf("provider %s has a section: %v, want %v", k.Provider, got, k.HasSection)
		}
		if (k.Open == nil) != (k.NotAttached != "") {
			t.Errorf("provider %s can neither be attached nor says why", k.Provider)
		}
		if (Cluster{}).Section(k.Provider) != nil {
			t.Errorf("provider %s has a section in an empty config", k.Provider)
		}
	}
}
