// Package kinds has the kinds of registries, and what a cluster of each is in the config
// file and in a Cluster object.
package kinds

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/registries/consul"
	"isthmus.dev/isthmus/registries/kubernetes"
	"isthmus.dev/isthmus/registries/mock"
	"isthmus.dev/isthmus/registries/provider"
)

// Following is what else follows clusters while their registries run.
type Following interface {
	kubernetes.Following
	consul.Following
}

// Hub is what registries may use of the hub.
type Hub struct {
	provider.Host
	Following Following
	Trusted   kubernetes.Trusted // nil: trust domains are not compared
}

// All are the kinds of registries. A new one is a line here, and a line for its
// section in Cluster.
func All(hub Hub) []provider.Kind {
	return []provider.Kind{
		hub.Kubernetes().Kind(),
		consul.Opener{Host: hub.Host, Following: hub.Following}.Kind(),
		mock.Kind(),
		{Provider: federation.External, NotAttached: "is always there, last of all, and made of ServiceEntries: it is not attached"},
		{Provider: federation.MCP, NotAttached: "cannot be attached: its services are ServiceEntries of the servers in mcp.servers"},
	}
}

// Cluster is one cluster of the file, with the section of its provider. In JSON it
// is the spec of a Cluster object.
type Cluster struct {
	ID         federation.ClusterID `yaml:"id" json:"-"`
	Provider   federation.Provider  `yaml:"provider"`
	Network    federation.NetworkID `yaml:"network"`
	Precedence *int                 `yaml:"precedence"`
	// TrustDomain is that of the identities of the cluster's workloads.
	TrustDomain string `yaml:"trustDomain" json:"-"`
	// Aliases are further names by which its proxies and tokens may name it.
	Aliases    []string            `yaml:"aliases"`
	Limits     Limits              `yaml:"limits"`
	Kubernetes *kubernetes.Section `yaml:"kubernetes"`
	Consul     *consul.Section     `yaml:"consul"`
}

// Section is that of the provider; nil: the cluster has none.
func (c Cluster) Section(p federation.Provider) any {
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("yaml") == p.Section() && !v.Field(i).IsNil() {
			return v.Field(i).Interface()
		}
	}
	return nil
}

// Kubernetes makes registries of Kubernetes clusters.
func (h Hub) Kubernetes() kubernetes.Opener {
	return kubernetes.Opener{Host: h.Host, Following: h.Following, Trusted: h.Trusted}
}

// Of is the kind of a provider of which clusters can be attached.
func (h Hub) Of(p federation.Provider) (provider.Kind, error) {
	all := All(h)
	at := slices.IndexFunc(all, func(k provider.Kind) bool { return k.Provider == p })
	switch {
	case at < 0:
		var names []string
		for _, p := range attachable() {
			names = append(names, string(p))
		}
		return provider.Kind{}, fmt.Errorf("provider %q is not known; use one of %s", p, strings.Join(names, ", "))
	case all[at].NotAttached != "":
		return provider.Kind{}, fmt.Errorf("provider %s %s", p, all[at].NotAttached)
	}
	return all[at], nil
}

// Attached are the kinds as requests attach clusters of them.
func (h Hub) Attached() attach.Kinds {
	all := attach.Kinds{}
	for _, k := range All(h) {
		all[k.Provider] = attach.Kind{Access: k.Access, Look: k.Look, Identified: k.Identified}
	}
	return all
}

// attachable are the providers of clusters that can be attached, sorted.
func attachable() (all []federation.Provider) {
	for _, k := range All(Hub{}) {
		if k.NotAttached == "" {
			all = append(all, k.Provider)
		}
	}
	slices.Sort(all)
	return all
}
