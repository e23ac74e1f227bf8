package kinds

import (
	"maps"
	"reflect"
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

// TestRequestsAttachByTheirSections: each kind reads its own section. None, and several, are of no provider.
func TestRequestsAttachByTheirSections(t *testing.T) {
	type values = map[string]any
	cluster := values{"kubeconfig": "K", "context": "c"}
	datacenter := values{"address": "A", "token": "T", "datacenter": "dc", "tls": values{"ca": "CA", "cert": "CERT", "key": "KEY"}}
	for name, test := range map[string]struct {
		input       values
		provider    federation.Provider
		section     values
		credentials map[string]string
	}{
		"Kubernetes": {values{"kubernetes": cluster, "consul": nil}, federation.Kubernetes, values{"context": "c"}, map[string]string{"kubeconfig": "K"}},
		"without a context": {
			values{"kubernetes": values{"kubeconfig": "K"}}, federation.Kubernetes, values{"context": ""}, map[string]string{"kubeconfig": "K"},
		},
		"Consul": {
			values{"clusterID": "c1", "consul": datacenter},
			federation.Consul,
			values{"address": "A", "datacenter": "dc"},
			map[string]string{"token": "T", "ca": "CA", "cert": "CERT", "key": "KEY"},
		},
		"an address alone": {
			values{"consul": values{"address": "A"}},
			federation.Consul,
			values{"address": "A"},
			map[string]string{"token": "", "ca": "", "cert": "", "key": ""},
		},
		"none":                           {values{"clusterID": "c1"}, "", nil, nil},
		"both":                           {values{"kubernetes": cluster, "consul": datacenter}, "", nil, nil},
		"one that nobody attaches":       {values{"external": values{"x": "y"}}, "", nil, nil},
		"one that is attached by a file": {values{"mock": values{"x": "y"}}, "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := Hub{}.Attached().Request("c1", test.input)
			var credentials map[string]string
			for key, value := range r.Credentials.Values {
				if credentials == nil {
					credentials = map[string]string{}
				}
				credentials[key] = value.Reveal()
			}
			if r.ID != "c1" || r.Provider != test.provider || !reflect.DeepEqual(r.Section, test.section) || !maps.Equal(credentials, test.credentials) {
				t.Errorf("the request is %+v with %v", r, credentials)
			}
		})
	}
}
