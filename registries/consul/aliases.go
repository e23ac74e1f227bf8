package consul

import (
	"fmt"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// Consul's DNS answers for more names of a service than NAME.service.consul:
// NAME.service.DATACENTER.consul, and TAG.NAME.service.consul for the instances that
// carry a tag. A tag that all instances carry makes another name of the service, any
// other tag a service of its own.

const consulSuffix = ".service.consul"

// mostTags bounds the services that the tags of one service make.
const mostTags = 8

// addNames gives the service the other names that Consul's DNS has for it. The
// endpoints of its shard are those of the instances, in their order.
func (t *translator) addNames(o *offer, found []*instance, report *report) {
	host := string(o.key.Hostname)
	name, ok := strings.CutSuffix(host, consulSuffix)
	if !ok || strings.Contains(name, ".") {
		return
	}
	if isLabel(t.datacenter) {
		o.shard.Aliases = append(o.shard.Aliases, federation.Hostname(name+".service."+t.datacenter+".consul"))
	}
	carriers := map[string][]int{}
	for i, in := range found {
		for _, tag := range plainTags(in.Service.Tags) {
			carriers[tag] = append(carriers[tag], i)
		}
	}
	var partial []string
	for tag, of := range carriers {
		if len(of) == len(found) {
			o.shard.Aliases = append(o.shard.Aliases, federation.Hostname(tag+"."+host))
		} else {
			partial = append(partial, tag)
		}
	}
	slices.Sort(o.shard.Aliases)
	slices.Sort(partial)
	if len(partial) > mostTags {
		report.ofService("LIMIT", "Tags", fmt.Sprintf("%d tags are carried by some of its instances; the first %d are names", len(partial), mostTags))
		partial = partial[:mostTags]
	}
	for _, tag := range partial {
		tagged := *o.shard
		tagged.Aliases, tagged.VIPs, tagged.Endpoints = nil, nil, nil
		for _, i := range carriers[tag] {
			tagged.Endpoints = append(tagged.Endpoints, o.shard.Endpoints[i])
		}
		if o.tagged == nil {
			o.tagged = map[federation.ServiceKey]*federation.Shard{}
		}
		o.tagged[federation.ServiceKey{Hostname: federation.Hostname(tag + "." + host), Namespace: o.key.Namespace}] = &tagged
	}
}

// plainTags are the tags that can be the first label of a name, each once.
func plainTags(tags []string) []string {
	var out []string
	for _, tag := range tags {
		if key, _ := splitTag(tag); key != plainTag+tag {
			continue // a label
		}
		if tag = strings.ToLower(tag); isLabel(tag) && !slices.Contains(out, tag) {
			out = append(out, tag)
		}
	}
	return out
}
