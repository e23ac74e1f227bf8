package kubernetes

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"isthmus.dev/isthmus/federation"
)

// shape is what the objects of a cluster look like.
type shape struct {
	services, pods int // pods of each service
	labels         int // of each pod
	ports          int // of each service
	alone          int // pods that belong to no service
	probes         bool
	external       bool // endpoints without pods
	nodes          int
}

func decoded[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := json.Unmarshal([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func (c shape) pod(name string, n int) string {
	labels := []string{fmt.Sprintf(`"pod":%q`, name)}
	for l := 1; l < c.labels; l++ {
		labels = append(labels, fmt.Sprintf(`"label-%d":"value-%d"`, l, l))
	}
	probe := ""
	if c.probes {
		probe = `,"readinessProbe":{"httpGet":{"path":"/ready","port":8080}},"livenessProbe":{"httpGet":{"path":"/alive","port":8080}}`
	}
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"shop","uid":"8f6d1a2c-0000-4000-8000-%012d","resourceVersion":"%d","labels":{%s}},`+
		`"spec":{"nodeName":"node-%d","serviceAccountName":"shop","containers":[{"name":"app","ports":[{"containerPort":8080}]%s}]},`+
		`"status":{"phase":"Running","podIP":%[7]q,"podIPs":[{"ip":%[7]q}]}}`,
		name, n, 1_000_000+n, strings.Join(labels, ","), n%100, probe, address(n))
}

func address(n int) string { return fmt.Sprintf("10.%d.%d.%d", n/62_500, n/250%250, n%250+1) }

// fill gives the model all objects, as the API server writes them.
func (c shape) fill(t *testing.T, m *model) {
	t.Helper()
	for i := range c.nodes {
		m.set(parseNode(decoded[corev1.Node](t, fmt.Sprintf(
			`{"metadata":{"name":"node-%d","resourceVersion":"%d","labels":{"topology.kubernetes.io/region":"west","topology.kubernetes.io/zone":"west-%d"}}}`, i, i+1_000_000, i%3))))
	}
	for i := range c.alone {
		m.set(parsePod(decoded[corev1.Pod](t, c.pod(fmt.Sprintf("alone-6d5f8c9b7-%05d", i), i))))
	}
	n := c.alone
	for s := range c.services {
		name := fmt.Sprintf("service-%d", s)
		var ports, served, endpoints []string
		for p := range c.ports {
			ports = append(ports, fmt.Sprintf(`{"name":"http-%d","port":%d,"targetPort":%[2]d,"protocol":"TCP"}`, p, 8080+p))
			served = append(served, fmt.Sprintf(`{"name":"http-%d","port":%d,"protocol":"TCP"}`, p, 8080+p))
		}
		m.set(parseService(decoded[corev1.Service](t, fmt.Sprintf(
			`{"metadata":{"name":%q,"namespace":"shop","uid":"9f6d1a2c-0000-4000-8000-%012d","resourceVersion":"%d","labels":{"app":%[1]q}},"spec":{"clusterIP":"10.96.%d.%d","clusterIPs":["10.96.%[4]d.%[5]d"],"selector":{"app":%[1]q},"ports":[%[6]s]}}`,
			name, s, s+1_000_000, s/250, s%250+1, strings.Join(ports, ","))), "cluster.local"))
		for i := range c.pods {
			pod := fmt.Sprintf("%s-6d5f8c9b7-%05d", name, i)
			target := ""
			if !c.external {
				m.set(parsePod(decoded[corev1.Pod](t, c.pod(pod, n))))
				target = fmt.Sprintf(`,"targetRef":{"kind":"Pod","namespace":"shop","name":%q,"uid":"8f6d1a2c-0000-4000-8000-%012d"}`, pod, n)
			}
			endpoints = append(endpoints,
				fmt.Sprintf(`{"addresses":[%q],"nodeName":"node-%d","zone":"west-%d","conditions":{"ready":true,"serving":true}%s}`,
					address(n), n%100, n%3, target))
			n++
			if len(endpoints) == 100 || i == c.pods-1 {
				m.set(parseSlice(decoded[discoveryv1.EndpointSlice](t, fmt.Sprintf(
					`{"metadata":{"name":"%s-%d","namespace":"shop","resourceVersion":"%d","labels":{"kubernetes.io/service-name":%q}},"addressType":"IPv4","ports":[%s],"endpoints":[%s]}`,
					name, i, n+1_000_000, name, strings.Join(served, ","), strings.Join(endpoints, ",")))))
				endpoints = nil
			}
		}
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestR06TheCountIsWhatTheHubKeeps: by the heap that a cluster takes, in the registry and
// in the snapshot.
func TestR06TheCountIsWhatTheHubKeeps(t *testing.T) {
	shapes := map[string]shape{
		"services of ten pods":   {services: 200, pods: 10, labels: 6, ports: 1, nodes: 100},
		"one pod each":           {services: 1000, pods: 1, labels: 6, ports: 1},
		"one large service":      {services: 1, pods: 3000, labels: 6, ports: 1},
		"no pods":                {services: 2000, ports: 2},
		"many labels":            {services: 50, pods: 20, labels: 30, ports: 1},
		"many ports":             {services: 50, pods: 20, labels: 4, ports: 8},
		"probes":                 {services: 50, pods: 20, labels: 4, ports: 1, probes: true},
		"pods of no service":     {alone: 3000, labels: 4},
		"nodes":                  {nodes: 5000},
		"endpoints without pods": {services: 50, pods: 50, ports: 1, external: true},
	}
	for name, c := range shapes {
		t.Run(name, func(t *testing.T) {
			before := heap()
			m := newModel("")
			c.fill(t, m)
			edit, _ := m.edit(true)
			edit.Source = federation.ShardKey{Provider: federation.Kubernetes, Cluster: "c1"}
			snapshot, _ := federation.Next(federation.Empty(), edit)
			edit = federation.Edit{}
			grown := heap() - before
			var counted federation.Usage
			for _, u := range m.used {
				counted = counted.Add(u)
			}
			n := int64(counted.Objects)
			t.Logf("for each object %d bytes are counted of %d (%.2f)", counted.Bytes/n, grown/n, float64(counted.Bytes)/float64(grown))
			if counted.Bytes < grown*3/4 || counted.Bytes > grown*5/4 {
				t.Errorf("for each object %d bytes are counted, and the heap grew by %d; want that they differ by a quarter at most",
					counted.Bytes/n, grown/n)
			}
			runtime.KeepAlive(m)
			runtime.KeepAlive(snapshot)
		})
	}
}
