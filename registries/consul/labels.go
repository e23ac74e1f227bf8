package consul

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"isthmus.dev/isthmus/federation"
)

// The keys of tags and meta that mean something to the hub. All else is a label
// and nothing but a label.
const (
	keyProtocol = "protocol" // names port and protocol
	keyExternal = "external" // not empty: outside the mesh
	keyNetwork  = "topology.istio.io/network"
	keyTLSMode  = "security.istio.io/tlsMode"
	plainTag    = "tag.consul/" // prefix of the label that a plain tag becomes, with the value "true"
)

const (
	maxLabels     = 64
	maxLabelValue = 512
)

// labels are the labels of an instance: its meta, and its tags of the forms
// key|value and key=value; meta wins over tags, and of tags the first in order.
// ignored are the entries that make no label, for a message.
func labels(meta map[string]string, tags []string) (out map[string]string, ignored []string) {
	out = make(map[string]string, len(meta)+len(tags))
	add := func(key, value, shown string) {
		if _, taken := out[key]; !isLabelKey(key) || isReserved(key) || !isTidy(value) || len(out) >= maxLabels || taken && out[key] != value {
			ignored = append(ignored, shown)
			return
		}
		out[key] = value
	}
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		add(key, meta[key], key)
	}
	for _, tag := range slices.Sorted(slices.Values(tags)) {
		if tag != "" {
			key, value := splitTag(tag)
			add(key, value, tag)
		}
	}
	return out, ignored
}

// splitTag reads key|value and key=value; any other tag is a label of its own.
func splitTag(tag string) (key, value string) {
	for _, mark := range []string{"|", "="} {
		if key, value, ok := strings.Cut(tag, mark); ok && key != "" {
			return key, value
		}
	}
	return plainTag + tag, "true"
}

// isReserved tells keys by which others place workloads: they come from the
// cluster's own settings and never from its data (B-C8). A tag may name the
// network and the TLS mode of its instance.
func isReserved(key string) bool {
	switch key {
	case keyNetwork, keyTLSMode:
		return false
	case "network", "cluster", "cluster-id", "clusterID":
		return true
	}
	prefix, _, _ := strings.Cut(key, "/")
	return prefix != key && (isWithin(prefix, "istio.io") || isWithin(prefix, "isthmus.dev"))
}

func isWithin(name, domain string) bool {
	return name == domain || strings.HasSuffix(name, "."+domain)
}

// isLabelKey tells a qualified name as Kubernetes wants label keys.
func isLabelKey(key string) bool {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		name = key
	} else if !isHostname(prefix) {
		return false
	}
	if name == "" || len(name) > 63 || !isAlphanumeric(rune(name[0])) || !isAlphanumeric(rune(name[len(name)-1])) {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool { return !isAlphanumeric(r) && r != '-' && r != '_' && r != '.' }) < 0
}

func isAlphanumeric(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// isTidy tells text that may be kept: short, valid and printable.
func isTidy(s string) bool {
	return len(s) <= maxLabelValue && utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// isLabelValue tells what Kubernetes takes for the value of a label, so that a
// network has the same name in both.
func isLabelValue(s string) bool { return !strings.Contains(s, "/") && isLabelKey(s) }

// networkOf is the network that the instance names, else the cluster's.
func (t *translator) networkOf(in *instance, report *report) federation.NetworkID {
	own := in.labels[keyNetwork]
	switch {
	case own == "":
		return t.network
	case !isLabelValue(own):
		report.ofInstance(in.id, "NETWORK_INVALID", keyNetwork,
			quote(own)+" is not the name of a network (63 letters, digits, '-', '_', '.'); the cluster's network is used")
		return t.network
	}
	return federation.NetworkID(own)
}

// declared are all values that an instance has for the key, by meta and by tags.
func declared(meta map[string]string, tags []string, key string) []string {
	var out []string
	if v := meta[key]; v != "" {
		out = append(out, v)
	}
	for _, tag := range tags {
		if k, v := splitTag(tag); k == key && v != "" {
			out = append(out, v)
		}
	}
	return out
}
