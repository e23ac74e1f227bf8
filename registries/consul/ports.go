package consul

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/consul/api"

	"isthmus.dev/isthmus/federation"
)

// The keys of meta and tags by which a service chooses its port itself.
const (
	keyInstancePort = "instance-port"
	keyServicePort  = "service-port"
)

// The values of Options.InstancePort that are not the name of a port.
const (
	AllPorts  = "all"   // a service port for each number on which an instance listens
	FirstPort = "first" // one service port, served by the default or first port of each instance
)

// defaultServicePort is the number of one logical HTTP port whose instances listen
// on different ones.
const defaultServicePort = 80

// port is one on which an instance listens; only ports of Consul 1.22 have names.
type port struct {
	name   string
	number uint16
}

func comparePorts(a, b port) int {
	return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.name, b.name))
}

// portsOf are the ports of an instance, the default one first.
func portsOf(e *entry, id string, report *report) ([]port, bool) {
	declared := []api.ServicePort{{Port: e.Service.Port}}
	if len(e.Service.Ports) > 0 {
		declared = slices.Clone(e.Service.Ports)
		if i := slices.IndexFunc(declared, func(p api.ServicePort) bool { return p.Default }); i > 0 {
			declared = slices.Concat(declared[i:i+1], declared[:i], declared[i+1:])
		}
	}
	var out []port
	for _, p := range declared {
		number, ok := federation.PortNumber(p.Port)
		if !ok {
			report.ofInstance(id, "PORT_INVALID", "Port", fmt.Sprintf("%d is not a port from 1 to 65535; the instance is not used", p.Port))
			return nil, false
		}
		name := strings.ToLower(p.Name)
		if name != "" && !isLabel(name) {
			report.ofService("PORT_NAME_INVALID", "Ports", "the port name "+quote(p.Name)+" of instance "+plain(id)+
				" is not a DNS label (letters, digits and hyphens, at most 63); the port is used without it")
			name = ""
		}
		if !slices.ContainsFunc(out, func(o port) bool { return o.number == number }) {
			out = append(out, port{name, number})
		}
	}
	return out, true
}

// protocolsOf are the protocols that the instance declares for the port: by the
// port's name, PROTOCOL or PROTOCOL-SUFFIX, else by meta and tags.
func (in *instance) protocolsOf(p port) []string {
	prefix, _, _ := strings.Cut(p.name, "-")
	if known := federation.ParseProtocol(prefix); prefix != "" && known != federation.Unsupported && known != federation.UDP {
		return []string{prefix}
	}
	return in.protocols
}

// portPlan is the ports of a service, and what of them each instance serves.
type portPlan struct {
	ports  []federation.Port
	served map[*instance][]federation.EndpointPort
}

// portChoice says which ports of its instances a service has.
type portChoice struct {
	instance string // AllPorts, FirstPort, or the name of a port; empty is AllPorts
	number   uint16 // of the one port; 0: see onePort
}

// planPorts makes the ports of a service as it chooses itself, else as its
// datacenter does.
func (t *translator) planPorts(found []*instance, report *report) portPlan {
	c := t.choice(found, report)
	if c.instance != AllPorts && c.instance != "" {
		if plan, ok := onePort(found, c, report); ok {
			return plan
		}
	}
	return allPorts(found, report)
}

func (t *translator) choice(found []*instance, report *report) portChoice {
	c := t.ports
	if said := agreed(found, keyInstancePort, report); said != "" {
		c.instance = strings.ToLower(said)
	}
	if said := agreed(found, keyServicePort, report); said != "" {
		n, err := strconv.ParseUint(said, 10, 16)
		if err != nil || n == 0 {
			report.ofService("PORT_SETTING_INVALID", keyServicePort, quote(said)+" is not a port from 1 to 65535; it is not used")
			return c
		}
		c.number = uint16(n)
		if c.instance == "" || c.instance == AllPorts {
			c.instance = FirstPort
		}
	}
	return c
}

// agreed is what the instances say under the key; nothing where they disagree.
func agreed(found []*instance, key string, report *report) string {
	var said []string
	for _, in := range found {
		said = append(said, declared(in.Service.Meta, in.Service.Tags, key)...)
	}
	slices.Sort(said)
	said = slices.Compact(said)
	switch len(said) {
	case 0:
		return ""
	case 1:
		return said[0]
	}
	report.ofService("PORT_SETTING_CONFLICT", key, fmt.Sprintf("its instances say %q; the setting of the datacenter is used",
		said[:min(len(said), 5)]))
	return ""
}

// onePort gives the service one port. Its number is the chosen one, else that of
// all instances if they listen on the same, else 80 for HTTP.
func onePort(found []*instance, c portChoice, report *report) (portPlan, bool) {
	chosen := choose(found, c.instance, report)
	var protocols []string
	var distinct []port
	for _, in := range found {
		if p, ok := chosen[in]; ok {
			protocols, distinct = append(protocols, in.protocolsOf(p)...), append(distinct, p)
		}
	}
	slices.SortFunc(distinct, comparePorts)
	distinct = slices.Compact(distinct)
	out := federation.Port{Number: c.number, Protocol: protocol("Port", protocols, report)}
	switch {
	case out.Number != 0:
	case distinct[0].number == distinct[len(distinct)-1].number:
		out.Number = distinct[0].number
	case out.Protocol.IsHTTP():
		out.Number = defaultServicePort
	default:
		report.ofService("PORT_NUMBER_MISSING", keyServicePort, fmt.Sprintf(
			"its instances listen on different ports and do not speak HTTP, so that it has a port for each of them; name the number that callers use in the meta or tag %s", keyServicePort))
		return portPlan{}, false
	}
	out.Name = strings.ToLower(string(out.Protocol))
	if name := distinct[0].name; name != "" && !slices.ContainsFunc(distinct, func(p port) bool { return p.name != name }) {
		out.Name = name
	}
	plan := portPlan{ports: []federation.Port{out}, served: map[*instance][]federation.EndpointPort{}}
	for in, p := range chosen {
		plan.served[in] = []federation.EndpointPort{{Name: out.Name, Number: p.number}}
	}
	return plan, true
}

// choose finds the port of each instance: the one of that name, or the first where
// no instance has one of that name.
func choose(found []*instance, name string, report *report) map[*instance]port {
	isNamed := func(p port) bool { return p.name == name }
	named := name != FirstPort && slices.ContainsFunc(found, func(in *instance) bool { return slices.ContainsFunc(in.ports, isNamed) })
	chosen := map[*instance]port{}
	for _, in := range found {
		i := 0
		if named {
			i = slices.IndexFunc(in.ports, isNamed)
		}
		if i < 0 {
			report.ofInstance(in.id, "PORT_MISSING", "Ports", "it has no port named "+quote(name)+
				", which other instances of the service have; nothing is sent to it")
			continue
		}
		chosen[in] = in.ports[i]
	}
	return chosen
}

// allPorts are the instances' ports by number.
func allPorts(found []*instance, report *report) portPlan {
	protocols, given := map[uint16][]string{}, map[uint16][]string{}
	for _, in := range found {
		for _, p := range in.ports {
			protocols[p.number] = append(protocols[p.number], in.protocolsOf(p)...)
			given[p.number] = append(given[p.number], p.name)
		}
	}
	plan := portPlan{served: map[*instance][]federation.EndpointPort{}}
	for number, said := range protocols {
		plan.ports = append(plan.ports, federation.Port{Number: number, Protocol: protocol(fmt.Sprintf("port %d", number), said, report)})
	}
	slices.SortFunc(plan.ports, func(a, b federation.Port) int { return cmp.Compare(a.Number, b.Number) })
	names := namePorts(plan.ports, given)
	for _, in := range found {
		for _, p := range in.ports {
			plan.served[in] = append(plan.served[in], federation.EndpointPort{Name: names[p.number], Number: p.number})
		}
		slices.SortFunc(plan.served[in], func(a, b federation.EndpointPort) int { return cmp.Compare(a.Number, b.Number) })
	}
	return plan
}

// namePorts gives each port the name that all instances give it, if no other port
// has that. Others are named by protocol, and by number where there are several.
func namePorts(ports []federation.Port, given map[uint16][]string) map[uint16]string {
	uses, names := map[string]int{}, map[uint16]string{}
	for _, p := range ports {
		said := slices.Clone(given[p.Number])
		slices.Sort(said)
		said = slices.Compact(said)
		if len(said) == 1 && said[0] != "" {
			names[p.Number] = said[0]
			uses[said[0]]++
		}
	}
	for i := range ports {
		p := &ports[i]
		p.Name = names[p.Number]
		if p.Name == "" || uses[p.Name] > 1 {
			p.Name = strings.ToLower(string(p.Protocol))
			if len(ports) > 1 {
				p.Name += fmt.Sprintf("-%d", p.Number)
			}
			for uses[p.Name] > 0 {
				p.Name += "-x"
			}
		}
		names[p.Number] = p.Name
	}
	return names
}
