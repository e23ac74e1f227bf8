package consul

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

func named(ports ...api.ServicePort) func(*entry) {
	return func(e *entry) { e.Service.Port, e.Service.Ports = 0, ports }
}

func metas(pairs ...string) func(*entry) {
	return func(e *entry) {
		e.Service.Meta = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			e.Service.Meta[pairs[i]] = pairs[i+1]
		}
	}
}

// TestR84PortsOfAService: as the datacenter or the service itself chooses them.
func TestR84PortsOfAService(t *testing.T) {
	dynamic := []entry{at("a", "10.0.0.1", 20001), at("b", "10.0.0.2", 20002)}
	multi := []entry{
		at("a", "10.0.0.1", 0, named(api.ServicePort{Name: "metrics", Port: 9090}, api.ServicePort{Name: "grpc-api", Port: 8080, Default: true})),
		at("b", "10.0.0.2", 0, named(api.ServicePort{Name: "metrics", Port: 9090}, api.ServicePort{Name: "grpc-api", Port: 8081, Default: true})),
	}
	for _, c := range []struct {
		name   string
		choice portChoice
		in     []entry
		want   string // ports, endpoints and problems
	}{
		{"all", portChoice{}, dynamic, "port http-20001 20001 HTTP|port http-20002 20002 HTTP|[{http-20001 20001}]|[{http-20002 20002}]"},
		{"first", portChoice{instance: FirstPort}, dynamic, "port http 80 HTTP|[{http 20001}]|[{http 20002}]"},
		{"first with a number", portChoice{FirstPort, 8000}, dynamic, "port http 8000 HTTP|[{http 20001}]|[{http 20002}]"},
		{
			"first of the same number",
			portChoice{instance: FirstPort},
			[]entry{at("a", "10.0.0.1", 8080), at("b", "10.0.0.2", 8080)},
			"port http 8080 HTTP|[{http 8080}]|[{http 8080}]",
		},
		{
			"the service chooses",
			portChoice{},
			[]entry{at("a", "10.0.0.1", 20001, metas("service-port", "81")), at("b", "10.0.0.2", 20002)},
			"port http 81 HTTP|[{http 20001}]|[{http 20002}]",
		},
		{"the service chooses by tag", portChoice{FirstPort, 80}, []entry{
			at("a", "10.0.0.1", 20001, tags("instance-port=all")),
			at("b", "10.0.0.2", 20002),
		}, "port http-20001 20001 HTTP|port http-20002 20002 HTTP|[{http-20001 20001}]|[{http-20002 20002}]"},
		{
			"TCP without a number",
			portChoice{instance: FirstPort},
			[]entry{at("a", "10.0.0.1", 20001, metas("protocol", "tcp")), at("b", "10.0.0.2", 20002, metas("protocol", "tcp"))},
			"port tcp-20001 20001 TCP|port tcp-20002 20002 TCP|[{tcp-20001 20001}]|[{tcp-20002 20002}]|! PORT_NUMBER_MISSING Service web service-port",
		},
		{
			"TCP with a number",
			portChoice{},
			[]entry{
				at("a", "10.0.0.1", 20001, metas("protocol", "tcp", "service-port", "6379")),
				at("b", "10.0.0.2", 20002, metas("protocol", "tcp")),
			},
			"port tcp 6379 TCP|[{tcp 20001}]|[{tcp 20002}]",
		},
		{
			"disagreement",
			portChoice{},
			[]entry{at("a", "10.0.0.1", 20001, metas("service-port", "80")), at("b", "10.0.0.2", 20001, metas("service-port", "81"))},
			"port http 20001 HTTP|[{http 20001}]|[{http 20001}]|! PORT_SETTING_CONFLICT Service web service-port",
		},
		{
			"no number",
			portChoice{},
			[]entry{at("a", "10.0.0.1", 20001, metas("service-port", "eighty"))},
			"port http 20001 HTTP|[{http 20001}]|! PORT_SETTING_INVALID Service web service-port",
		},
		{
			"names are kept",
			portChoice{},
			multi[:1],
			"port grpc-api 8080 GRPC|port metrics 9090 HTTP|[{grpc-api 8080} {metrics 9090}]",
		},
		{
			"a name of two numbers",
			portChoice{},
			multi,
			"port grpc-8080 8080 GRPC|port grpc-8081 8081 GRPC|port metrics 9090 HTTP|[{grpc-8080 8080} {metrics 9090}]|[{grpc-8081 8081} {metrics 9090}]",
		},
		{
			"names that are not labels",
			portChoice{},
			[]entry{
				at("a", "10.0.0.1", 0, named(api.ServicePort{Name: "grpc_api", Port: 8080}, api.ServicePort{Name: "metrics", Port: 9090})),
				at("b", "10.0.0.2", 0, named(api.ServicePort{Name: "grpc_api", Port: 8080}, api.ServicePort{Name: "metrics", Port: 9090})),
			},
			"port http-8080 8080 HTTP|port metrics 9090 HTTP|[{http-8080 8080} {metrics 9090}]|[{http-8080 8080} {metrics 9090}]|! PORT_NAME_INVALID Service web Ports",
		},
		{"the default port", portChoice{instance: FirstPort}, multi, "port grpc-api 80 GRPC|[{grpc-api 8080}]|[{grpc-api 8081}]"},
		{"a named port", portChoice{instance: "metrics"}, multi, "port metrics 9090 HTTP|[{metrics 9090}]|[{metrics 9090}]"},
		{"a name that nobody has", portChoice{"admin", 80}, multi, "port grpc-api 80 GRPC|[{grpc-api 8080}]|[{grpc-api 8081}]"},
		{
			"a name that one has",
			portChoice{"metrics", 80},
			[]entry{multi[0], at("c", "10.0.0.3", 8080)},
			"port metrics 80 HTTP|[{metrics 9090}]|[]|! PORT_MISSING instance c Ports",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			translate := testTranslator(t, Options{})
			translate.ports = c.choice
			o := translate.service("web", c.in)
			var facts []string
			for _, p := range o.shard.Ports {
				facts = append(facts, fmt.Sprintf("port %s %d %s", p.Name, p.Number, p.Protocol))
			}
			for _, e := range o.shard.Endpoints {
				facts = append(facts, fmt.Sprint(e.Ports))
			}
			for _, p := range o.problems {
				facts = append(facts, fmt.Sprintf("! %s %s %s", p.Code, p.Object, p.Field))
			}
			if got := strings.Join(facts, "|"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestR84NamesOfConsulsDNS: a tag that all instances carry makes another name of the
// service, any other plain tag a service of those that carry it.
func TestR84NamesOfConsulsDNS(t *testing.T) {
	o := testTranslator(t, Options{}).service("web", []entry{
		at("a", "10.0.0.1", 80, tags("Live", "v1", "traefik.enable=true", "not_a_label")), at("b", "10.0.0.2", 80, tags("live", "v2", "v2")),
	})
	if got, want := fmt.Sprint(o.shard.Aliases), "[live.web.service.consul live.web.service.dc1.consul web.service.dc1.consul]"; got != want {
		t.Errorf("the aliases are %s, want %s", got, want)
	}
	for host, want := range map[federation.Hostname]string{"v1.web.service.consul": "10.0.0.1", "v2.web.service.consul": "10.0.0.2"} {
		s := o.tagged[federation.ServiceKey{Hostname: host}]
		if s == nil || len(s.Endpoints) != 1 || s.Endpoints[0].Address.String() != want || len(s.Ports) != 1 {
			t.Errorf("%s is %+v", host, s)
			continue
		}
		tag, _, _ := strings.Cut(string(host), ".")
		if got := fmt.Sprint(s.Aliases); got != "["+tag+".web.service.dc1.consul]" {
			t.Errorf("%s has the aliases %s", host, got)
		}
	}
	if len(o.tagged) != 2 {
		t.Errorf("there are services of tags %v", o.tagged)
	}
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprint("tag-", i)
	}
	o = testTranslator(t, Options{}).service("web", []entry{
		at("a", "10.0.0.1", 80, tags(many...)),
		at("b", "10.0.0.2", 80, tags(many[:35]...)),
	})
	if len(o.shard.Aliases) != 1+2*mostShared || len(o.tagged) != 5 || len(o.problems) != 1 || o.problems[0].Code != "LIMIT" {
		t.Errorf("40 tags make %d aliases, %d services and the problems %+v", len(o.shard.Aliases), len(o.tagged), o.problems)
	}
	other := testTranslator(t, Options{Hostname: "{{.Service}}.default.svc.cluster.local"}).service("web",
		[]entry{at("a", "10.0.0.1", 80, tags("v1"))})
	if len(other.shard.Aliases)+len(other.tagged) != 0 {
		t.Errorf("a service that is not named as in Consul's DNS has the names %v %v", other.shard.Aliases, other.tagged)
	}
}

// TestR84OnePortOfARealService: instances on dynamic ports are one service port, and
// a tag of some of them is a name.
func TestR84OnePortOfARealService(t *testing.T) {
	t.Parallel()
	r := startRig(t, testbed.ConsulOptions{}, Options{InstancePort: FirstPort})
	for i := range 4 {
		tags := []string{"live"}
		if i == 0 {
			tags = append(tags, "primary")
		}
		r.register("nomadweb", fmt.Sprint("nomadweb-", i), fmt.Sprintf("10.0.0.%d", i+1), 20000+i, map[string]any{"Tags": tags})
	}
	recorder, _ := registrytest.Start(t, r)
	primary := federation.ServiceKey{Hostname: "primary.nomadweb.service.consul"}
	recorder.Wait(t, "the service and that of its tag", func(v registrytest.View) bool {
		s, tagged := v.Services[r.Key("nomadweb")], v.Services[primary]
		return s != nil && len(s.Ports) == 1 && s.Ports[0].Number == 80 && len(s.Endpoints) == 4 && len(s.Aliases) == 3 &&
			tagged != nil && len(tagged.Endpoints) == 1 && tagged.Endpoints[0].Ports[0].Number == 20000
	})
	r.register("nomadweb", "nomadweb-0", "10.0.0.1", 20000, map[string]any{"Tags": []string{"live"}})
	recorder.Wait(t, "the end of the tag's service", func(v registrytest.View) bool {
		return v.Services[primary] == nil && v.Services[r.Key("nomadweb")] != nil
	})
}
