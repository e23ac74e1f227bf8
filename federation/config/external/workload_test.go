package external_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/external"
	networking "istio.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

func instance(t testing.TB, labels map[string]string, spec string) external.Instance {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	i := external.Instance{
		Key:    federation.ObjectKey{Group: "networking.istio.io", Kind: "WorkloadEntry", Namespace: "shop", Name: "vm-1"},
		Labels: labels, Spec: &networking.WorkloadEntry{},
	}
	if err := protojson.Unmarshal(data, i.Spec); err != nil {
		t.Fatal(err)
	}
	return i
}

// TestSeed53 has all that a WorkloadEntry can say of an endpoint.
func TestSeed53(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{
			"{address: 10.0.0.1, labels: {app: web, v: '0'}, network: n1, locality: eu/a/r1, weight: 7, serviceAccount: web, ports: {http: 8080, admin: 9}}",
			`{"addresses":["10.0.0.1"],"network":"n1","locality":{"region":"eu","zone":"a","subZone":"r1"},"labels":{"app":"web","v":"1"},"serviceAccount":"shop/web","ports":[{"name":"admin","number":9},{"name":"http","number":8080}],"weight":7,"tlsMode":"istio"}`,
		},
		{"{address: VM.example.com}", `{"addresses":null,"labels":{"v":"1"},"host":"vm.example.com"}`},
		{
			"{address: 'unix:///run/s', labels: {topology.istio.io/network: n2, security.istio.io/tlsMode: disabled}, serviceAccount: web}",
			`{"addresses":null,"network":"n2","labels":{"security.istio.io/tlsMode":"disabled","topology.istio.io/network":"n2","v":"1"},"serviceAccount":"shop/web","host":"unix:/run/s","tlsMode":"disabled"}`,
		},
	} {
		key, w, problems := external.Workload(instance(t, map[string]string{"v": "1"}, c.spec))
		got, err := json.Marshal(w)
		if err != nil || len(problems) > 0 || key.String() != "shop/vm-1" {
			t.Errorf("%s: %v, %v, %v", c.spec, key, problems, err)
		}
		if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("%s: %s", c.spec, diff)
		}
	}
}

func TestWorkloadEntryThatCannotBeReached(t *testing.T) {
	for spec, code := range map[string]string{
		"{network: n1}":    "NOT_HONOURED spec.address",
		"{address: 1.2.3}": "ADDRESS_INVALID spec.address",
	} {
		_, w, problems := external.Workload(instance(t, nil, spec))
		if diff := cmp.Diff([]string{code}, codes(problems)); diff != "" || w != nil {
			t.Errorf("%s: %+v %s", spec, w, diff)
		}
	}
}

func FuzzTranslate(f *testing.F) {
	f.Add([]byte(`{"hosts":["a.example.com","*.b"],"addresses":["10.0.0.0/8","x"],"ports":[{"number":80,"name":"http"},{"number":70000}],"resolution":"DNS"}`))
	f.Add([]byte(`{"hosts":["a"],"resolution":"STATIC","endpoints":[{"address":"unix:///a","ports":{"x":0}},{},null],"workloadSelector":{}}`))
	f.Add([]byte(`{"resolution":9,"ports":[null]}`))
	f.Fuzz(func(t *testing.T, spec []byte) {
		e := external.Entry{Spec: &networking.ServiceEntry{}}
		lenient := protojson.UnmarshalOptions{DiscardUnknown: true}
		if lenient.Unmarshal(spec, e.Spec) != nil {
			return
		}
		shards, _ := external.Services([]external.Entry{e, e}, nil)
		edit := federation.Edit{Source: federation.ShardKey{Cluster: "hub", Provider: federation.External}}
		edit.Services = federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true, Set: shards}
		for _, endpoint := range e.Spec.GetEndpoints() {
			external.Workload(external.Instance{Spec: endpoint})
		}
		snapshot, _ := federation.Next(federation.Empty(), edit)
		if snapshot.Services().Len() > len(shards) {
			t.Error("there are more services than shards")
		}
	})
}

// TestU34ReportsThatDoNotCountAreReported: no proxy proves that it is at a name. The workload itself is used.
func TestU34ReportsThatDoNotCountAreReported(t *testing.T) {
	for spec, counts := range map[string]bool{"{address: 10.0.0.1}": true, "{address: vm.example}": false, "{address: unix:///run/app.sock}": false} {
		for _, wants := range []bool{false, true} {
			i := instance(t, nil, spec)
			i.WantsReports = wants
			_, workload, problems := external.Workload(i)
			said := len(problems) == 1 && problems[0].Code == "NOT_HONOURED" && problems[0].Field == "metadata.annotations"
			if workload == nil || workload.Health == federation.Unhealthy || said != (wants && !counts) || len(problems) > 1 {
				t.Errorf("%s with the annotation %t: the workload is %+v, and the problems are %v", spec, wants, workload, problems)
			}
		}
	}
}
