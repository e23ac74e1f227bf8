package consul

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// Consul's DNS answers for more names of a service than NAME.service.consul:
// NAME.service.DATACENTER.consul, and TAG.NAME.service.consul and
// TAG.NAME.service.DATACENTER.consul for the instances that carry a tag. A tag that all
// instances carry makes other names of the service, any other tag a service of its own.

const consulSuffix = ".service.consul"

// What the tags of one service make is bounded: names of the service, which may become
// services where another cluster has the service too, and services.
const (
	mostShared = 32
	mostTags   = 8
)

// addNames gives the service the other names that Consul's DNS has for it. The
// endpoints of its shard are those of the instances, in their order.
func (t *translator) addNames(o *translation, found []*instance, report *report) {
	host := string(o.key.Hostname)
	name, ok := strings.CutSuffix(host, consulSuffix)
	if !ok || strings.Contains(name, ".") {
		return
	}
	shared, partial := sortTags(found, report)
	o.shard.Aliases = t.inDatacenter(name)
	for _, tag := range shared {
		o.shard.Aliases = append(o.shard.Aliases, federation.Hostname(tag+"."+host))
		o.shard.Aliases = append(o.shard.Aliases, t.inDatacenter(tag+"."+name)...)
	}
	slices.Sort(o.shard.Aliases)
	for tag, carriers := range partial {
		tagged := *o.shard
		tagged.Aliases, tagged.VIPs, tagged.Endpoints = t.inDatacenter(tag+"."+name), nil, nil
		for _, i := range carriers {
			tagged.Endpoints = append(tagged.Endpoints, o.shard.Endpoints[i])
		}
		if o.tagged == nil {
			o.tagged = map[federation.ServiceKey]*federation.Shard{}
		}
		o.tagged[federation.ServiceKey{Hostname: federation.Hostname(tag + "." + host), Namespace: o.key.Namespace}] = &tagged
	}
}

// inDatacenter is the name as other datacenters spell it.
func (t *translator) inDatacenter(name string) []federation.Hostname {
	if !isLabel(t.datacenter) {
		return nil
	}
	return []federation.Hostname{federation.Hostname(name + ".service." + t.datacenter + ".consul")}
}

// sortTags are the tags that all instances carry, and for the others which do.
func sortTags(found []*instance, report *report) (shared []string, partial map[string][]int) {
	partial = map[string][]int{}
	for i, in := range found {
		for _, tag := range plainTags(in.Service.Tags) {
			partial[tag] = append(partial[tag], i)
		}
	}
	var some []string
	for _, tag := range slices.Sorted(maps.Keys(partial)) {
		if len(partial[tag]) < len(found) {
			some = append(some, tag)
			continue
		}
		shared = append(shared, tag)
		delete(partial, tag)
	}
	if len(shared) > mostShared || len(some) > mostTags {
		report.ofService("LIMIT", "Tags",
			fmt.Sprintf("%d tags are carried by all of its instances, of which the first %d are names, and %d by some, of which the first %d are",
				len(shared), mostShared, len(some), mostTags))
	}
	for _, tag := range some[min(len(some), mostTags):] {
		delete(partial, tag)
	}
	return shared[:min(len(shared), mostShared)], partial
}

// plainTags are the tags that can be the first label of a name, each once.
func plainTags(tags []string) []string {
	var out []string
	for _, tag := range tags {
		if key, _ := splitTag(tag); key != plainTag+tag {
			continue // a label
		}
		tag = strings.ToLower(tag)
		if isLabel(tag) && !slices.Contains(out, tag) {
			out = append(out, tag)
		}
	}
	return out
}
