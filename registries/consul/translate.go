package consul

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// translator turns Consul's data about one service into values of the domain.
// It is pure: equal input in any order gives equal output.
type translator struct {
	names      *naming
	network    federation.NetworkID
	datacenter string
	ports      portChoice // of services that do not choose themselves
	accounts   *accounts  // of services; nil: they have none
}

// translation is what one Consul service comes to. A service whose instances are all
// proxies, gone or unusable has no shard.
type translation struct {
	key       federation.ServiceKey
	shard     *federation.Shard
	tagged    map[federation.ServiceKey]*federation.Shard // of the instances that carry a tag
	workloads map[federation.WorkloadKey]*federation.Workload
	problems  []federation.Problem
	odd       *unreadable // why the service cannot be read
	// kept: it could not be read since the registry started, so its earlier state stays.
	kept bool
}

func (o *translation) equal(p *translation) bool {
	if o.shard == nil || p.shard == nil {
		return o.key == p.key && o.shard == p.shard && o.kept == p.kept && slices.Equal(o.problems, p.problems)
	}
	return o.key == p.key && o.shard.Equal(p.shard) && maps.EqualFunc(o.tagged, p.tagged, (*federation.Shard).Equal) &&
		maps.EqualFunc(o.workloads, p.workloads, (*federation.Workload).Equal) && slices.Equal(o.problems, p.problems)
}

// shrinks reports whether the new translation lacks an instance that this one has, or may have.
func (o *translation) shrinks(to *translation) bool {
	if o.kept && !to.kept {
		return true
	}
	for key := range o.workloads {
		if _, ok := to.workloads[key]; !ok {
			return true
		}
	}
	return o.shard != nil && (to.shard == nil || len(to.shard.Endpoints) < len(o.shard.Endpoints))
}

// service translates all instances of one service.
func (t *translator) service(name string, entries []entry) *translation {
	o := &translation{workloads: map[federation.WorkloadKey]*federation.Workload{}}
	report := &report{service: name}
	key, err := t.names.key(name, t.datacenter)
	if err != nil {
		report.ofService("NAME_INVALID", "", err.Error())
		o.problems = report.problems()
		return o
	}
	o.key = key
	found := t.instances(name, entries, report)
	if len(found) > 0 {
		o.shard = t.shard(found, report)
		t.addNames(o, found, report)
	}
	for _, in := range found {
		o.workload(in)
	}
	o.problems = report.problems()
	return o
}

// instance is a usable entry on its way to an endpoint.
type instance struct {
	*entry
	id        string // shown in messages
	address   federation.Address
	ports     []port // the first is the default one
	labels    map[string]string
	protocols []string
	weight    int
	workload  federation.WorkloadKey
	account   string // NAMESPACE/NAME; empty: it has none
	endpoint  federation.Endpoint
}

// instances are the usable ones in a fixed order; the others are reported.
func (t *translator) instances(name string, entries []entry, report *report) []*instance {
	var found []*instance
	for i := range entries {
		e := &entries[i]
		if !e.isService() {
			continue
		}
		if in := t.instance(name, e, report); in != nil {
			found = append(found, in)
		}
	}
	found = withoutNames(found, report)
	slices.SortFunc(found, func(a, b *instance) int {
		return cmp.Or(a.address.Compare(b.address), slices.CompareFunc(a.ports, b.ports, comparePorts),
			cmp.Compare(a.workload.Name, b.workload.Name))
	})
	return found
}

func (t *translator) instance(name string, e *entry, report *report) *instance {
	in := &instance{entry: e, id: e.Service.ID}
	key, _ := t.names.key(name, t.datacenter)
	in.workload = federation.WorkloadKey{
		Namespace: key.Namespace,
		Name:      strings.Join([]string{url.PathEscape(name), url.PathEscape(e.Node.Node), url.PathEscape(e.Service.ID)}, "/"),
	}
	if len(in.workload.Name) > maxWorkloadName {
		report.ofInstance(in.id, "NAME_INVALID", "ID", "its ID or its node's name is too long; the instance is not used")
		return nil
	}
	if e.Service.SocketPath != "" {
		report.ofInstance(in.id, "SOCKET_REFUSED", "SocketPath", "unix sockets of another machine are not used; register an address and a port")
		return nil
	}
	var ok bool
	in.ports, ok = portsOf(e, in.id, report)
	if !ok {
		return nil
	}
	in.address, ok = address(e.rawAddress())
	if !ok {
		report.ofInstance(in.id, "ADDRESS_INVALID", "Address",
			quote(e.rawAddress())+" is neither an IP address nor a DNS name; the instance is not used")
		return nil
	}
	var ignored []string
	in.labels, ignored = labels(e.Service.Meta, e.Service.Tags)
	report.ignored(ignored)
	if account, mapped := t.accounts.service(name); mapped {
		in.account = account.String()
	}
	in.protocols = declared(e.Service.Meta, e.Service.Tags, keyProtocol)
	in.weight = weight(e, in.id, report)
	return in
}

// maxWorkloadName bounds the names of workloads, which are keys everywhere.
const maxWorkloadName = 512

// address is strict: no zone, no leading zeros, and a name must not look like
// an address (B-C2).
func address(s string) (federation.Address, bool) {
	if ip, err := federation.ParseIP(s); err == nil {
		return federation.IPAddress(ip), true
	}
	host := strings.TrimSuffix(strings.ToLower(s), ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if !isHostname(host) || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return federation.Address{}, false
	}
	return federation.HostAddress(host), true
}

// weight clamps to 0–65535 (B-C7).
func weight(e *entry, id string, report *report) int {
	w := e.rawWeight()
	if w < 0 || w > 65535 {
		report.ofInstance(id, "WEIGHT_INVALID", "Weights", fmt.Sprintf("%d is outside of 0 to 65535; the nearest of them is used", w))
	}
	return min(max(w, 0), 65535)
}

// withoutNames refuses DNS names where other instances have IP addresses: a
// proxy resolves either all endpoints of a service or none.
func withoutNames(found []*instance, report *report) []*instance {
	isIP := func(in *instance) bool { _, ok := in.address.IP(); return ok }
	if !slices.ContainsFunc(found, isIP) {
		return found
	}
	return slices.DeleteFunc(found, func(in *instance) bool {
		if !isIP(in) {
			report.ofInstance(in.id, "ADDRESS_INVALID", "Address",
				"is a DNS name, while other instances have IP addresses; the instance is not used")
		}
		return !isIP(in)
	})
}

func (o *translation) workload(in *instance) {
	w := &federation.Workload{Network: in.endpoint.Network, Locality: in.endpoint.Locality, Labels: in.labels, ServiceAccount: in.account}
	if ip, ok := in.address.IP(); ok {
		w.Addresses = []netip.Addr{ip}
		o.workloads[in.workload] = w
	}
}
