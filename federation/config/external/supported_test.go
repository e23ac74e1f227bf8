package external_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	networking "istio.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/external"
	"isthmus.dev/isthmus/internal/prototest"
)

// TestEveryFieldHasAnEffectOrIsReported takes each field out of valid objects, one at a
// time: a service or a workload changes, or a problem of the object reports that none does.
func TestEveryFieldHasAnEffectOrIsReported(t *testing.T) {
	tried := map[string]bool{}
	for name, spec := range map[string]string{
		"static": `{hosts: [a.example, b.example], addresses: [10.9.0.1, 10.9.0.2], location: MESH_INTERNAL, resolution: STATIC, exportTo: [".", other], subjectAltNames: [s1, s2],
			ports: [{number: 80, name: http, protocol: HTTP}, {number: 81, name: http-b, protocol: HTTP, targetPort: 8181}, {number: 443, name: tls, protocol: TLS}],
			endpoints: [{address: 10.9.1.1, ports: {http: 8081}, labels: {a: b}, network: n1, locality: r/z, weight: 3, serviceAccount: sa}]}`,
		"selector": `{hosts: [a.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], workloadSelector: {labels: {app: a}}}`,
		"names":    `{hosts: [a.example], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: c.example}]}`,
	} {
		e := entry(t, name, 0, spec)
		told := func() string {
			services, problems := external.Services([]external.Entry{e},
				map[federation.ServiceKey][]netip.Addr{shop("a.example"): {netip.MustParseAddr("240.240.0.1")}})
			text := fmt.Sprintln(codes(problems))
			for _, key := range slices.SortedFunc(maps.Keys(services), federation.ServiceKey.Compare) {
				text += key.String() + render(t, services[key])
			}
			return text
		}
		whole := told()
		prototest.WithoutEach(e.Spec, func(path string) {
			tried["ServiceEntry "+path] = true
			if told() == whole {
				t.Errorf("ServiceEntry %s: %s has no effect and is not reported", name, path)
			}
		})
	}
	i := instance(t, nil,
		"{address: 10.0.0.1, labels: {app: web, v: '0'}, network: n1, locality: eu/a/r1, weight: 7, serviceAccount: web, ports: {http: 8080, admin: 9}}")
	told := func() string {
		_, w, problems := external.Workload(i)
		data, err := yaml.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintln(codes(problems)) + string(data)
	}
	whole := told()
	prototest.WithoutEach(i.Spec, func(path string) {
		tried["WorkloadEntry "+path] = true
		if told() == whole {
			t.Errorf("WorkloadEntry: %s has no effect and is not reported", path)
		}
	})
	for _, path := range slices.Concat(leaves("ServiceEntry ", &networking.ServiceEntry{}),
		leaves("WorkloadEntry ", &networking.WorkloadEntry{})) {
		if !tried[path] {
			t.Errorf("no object has %s", path)
		}
	}
}

// leaves are the paths of all values of a message, after the prefix.
func leaves(prefix string, m proto.Message) (all []string) {
	var below func(d protoreflect.MessageDescriptor, at string)
	below = func(d protoreflect.MessageDescriptor, at string) {
		for i := range d.Fields().Len() {
			field := d.Fields().Get(i)
			if prototest.IsLeaf(field) {
				all = append(all, at+field.JSONName())
			} else {
				below(field.Message(), at+field.JSONName()+".")
			}
		}
	}
	below(m.ProtoReflect().Descriptor(), prefix)
	return all
}
