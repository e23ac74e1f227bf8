package hub

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

// kinds are the kinds of registries. A new one is a line here, and a line for its
// section in clusterConfig.
func kinds(with surroundings) []provider.Kind {
	return []provider.Kind{
		with.kubernetes().Kind(),
		consul.Opener{Host: with.host(), Count: with.countConsul}.Kind(),
		mock.Kind(),
		{Provider: federation.External, NotAttached: "is always there, last of all, and made of ServiceEntries: it is not attached"},
		{Provider: federation.MCP, NotAttached: "comes with configuration sources over MCP (not in this version)"},
	}
}

// clusterConfig is one cluster of the file, with the section of its provider. In JSON it
// is the spec of a Cluster object.
type clusterConfig struct {
	ID         federation.ClusterID `yaml:"id" json:"-"`
	Provider   federation.Provider  `yaml:"provider"`
	Network    federation.NetworkID `yaml:"network"`
	Precedence *int                 `yaml:"precedence"`
	// TrustDomain is that of the identities of the cluster's workloads.
	TrustDomain string `yaml:"trustDomain" json:"-"`
	// Aliases are further names by which its proxies and tokens may name it.
	Aliases    []string            `yaml:"aliases"`
	Limits     limitsConfig        `yaml:"limits"`
	Kubernetes *kubernetes.Section `yaml:"kubernetes"`
	Consul     *consul.Section     `yaml:"consul"`
}

// section is that of the provider; nil: the config has none.
func (c clusterConfig) section(p federation.Provider) any {
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("yaml") == sectionName(p) && !v.Field(i).IsNil() {
			return v.Field(i).Interface()
		}
	}
	return nil
}

func sectionName(p federation.Provider) string { return strings.ToLower(string(p)) }

func (s surroundings) kindOf(p federation.Provider) (provider.Kind, error) {
	all := kinds(s)
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

// looks are the pre-flights of clusters that can be attached by a request.
func looks(with surroundings) map[federation.Provider]attach.Looker {
	all := map[federation.Provider]attach.Looker{}
	for _, k := range kinds(with) {
		if k.Look != nil {
			all[k.Provider] = k.Look
		}
	}
	return all
}

// attachable are the providers of clusters that can be attached, sorted.
func attachable() (all []federation.Provider) {
	for _, k := range kinds(surroundings{}) {
		if k.NotAttached == "" {
			all = append(all, k.Provider)
		}
	}
	slices.Sort(all)
	return all
}
