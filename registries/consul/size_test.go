package consul

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
)

// shape is what the services of a datacenter look like.
type shape struct {
	services, instances int
	labels              int
	shared, partial     int    // tags of all instances, and of all but one
	ports               int    // named ones
	unusable            bool   // no instance has a port
	host                string // follows the name of the instance in its address; empty: an IP address
}

func (c shape) instance(service string, i int) string {
	var meta, tags, ports []string
	for l := range c.labels {
		meta = append(meta, fmt.Sprintf(`"label-%d":"value-%d"`, l, l))
	}
	for tag := range c.shared {
		tags = append(tags, fmt.Sprintf(`"shared-%d"`, tag))
	}
	for tag := range c.partial {
		if tag != i {
			tags = append(tags, fmt.Sprintf(`"partial-%d"`, tag))
		}
	}
	for p := range c.ports {
		ports = append(ports, fmt.Sprintf(`{"Name":"http-%d","Port":%d}`, p, 8000+p))
	}
	port := 80
	if c.unusable {
		port = 0
	}
	address := fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)
	if c.host != "" {
		address = fmt.Sprintf("i-%d%s", i, c.host)
	}
	return fmt.Sprintf(`{"Node":{"ID":"8f6d1a2c-0000-4000-8000-%012d","Node":"node-%d","Address":"10.0.0.1","Datacenter":"dc1"},`+
		`"Service":{"ID":"%s-%d","Service":%q,"Port":%d,"Ports":[%s],"Address":%q,"Meta":{%s},"Tags":[%s],"Weights":{"Passing":1,"Warning":1}},`+
		`"Checks":[{"CheckID":"alive","Status":"passing"}]}`,
		i, i, service, i, service, port, strings.Join(ports, ","), address, strings.Join(meta, ","), strings.Join(tags, ","))
}

// RoundTrip answers as a Consul with such services.
func (c shape) RoundTrip(q *http.Request) (*http.Response, error) {
	body := "[]"
	switch name, ok := strings.CutPrefix(q.URL.Path, healthPath); {
	case ok && name == canaryService:
		body = fmt.Sprintf(instanceJSON, name, name, "10.0.0.100")
	case ok:
		var all []string
		for i := range c.instances {
			all = append(all, c.instance(name, i))
		}
		body = "[" + strings.Join(all, ",") + "]"
	case q.URL.Path == servicesPath:
		names := []string{`"consul":[]`}
		for i := range c.services {
			names = append(names, fmt.Sprintf(`"service-%d":[]`, i))
		}
		body = "{" + strings.Join(names, ",") + "}"
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"X-Consul-Index": {"7"}},
		Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// published keeps the snapshot that the hub derives from what a registry reports.
type published struct{ snapshot *federation.Snapshot }

func (p *published) Update(e federation.Edit) {
	e.Source = federation.ShardKey{Provider: federation.Consul, Cluster: "c1"}
	p.snapshot, _ = federation.Next(p.snapshot, e)
}

func (p *published) Status(federation.RegistryStatus) {}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestR06TheCountIsWhatTheHubKeeps: by the heap that a datacenter takes, in the registry and
// in the snapshot.
func TestR06TheCountIsWhatTheHubKeeps(t *testing.T) {
	for name, c := range map[string]shape{
		"instances":                {services: 20, instances: 100},
		"with 8 labels":            {services: 20, instances: 100, labels: 8},
		"with 32 labels":           {services: 20, instances: 100, labels: 32},
		"with 60 labels":           {services: 10, instances: 100, labels: 60},
		"one large service":        {services: 1, instances: 3000, labels: 2},
		"small services":           {services: 2000, instances: 1},
		"small services, 4 labels": {services: 2000, instances: 1, labels: 4},
		"with names of tags":       {services: 500, instances: 2, shared: 30},
		"with few names of tags":   {services: 500, instances: 2, shared: 3},
		"with services of tags":    {services: 20, instances: 50, partial: 8},
		"with ports":               {services: 20, instances: 100, ports: 5},
		"without ports":            {services: 500, instances: 20, unusable: true},
		"with DNS names":           {services: 20, instances: 100, host: ".example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			registry, err := New(Options{Cluster: "c1", Address: "http://consul.test:8500"})
			if err != nil {
				t.Fatal(err)
			}
			registry.client.http.Transport = c
			sink := &published{federation.Empty()}
			before := heap()
			s := newSyncer(registry, sink)
			if err := s.sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			grown, counted := heap()-before, s.model.used.Bytes
			n := int64(c.services * c.instances)
			t.Logf("for each instance %d bytes are counted of %d (%.2f)", counted/n, grown/n, float64(counted)/float64(grown))
			if counted < grown*3/4 || counted > grown*5/4 {
				t.Errorf("for each instance %d bytes are counted, and the heap grew by %d; want that they differ by a quarter at most",
					counted/n, grown/n)
			}
			runtime.KeepAlive(s)
			runtime.KeepAlive(sink)
		})
	}
}
