package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/federationtest"
)

// editText is an Edit as a person would want to compare it.
type editText struct {
	Services    map[string]*federation.Shard    `json:"services,omitempty"`
	Workloads   map[string]*federation.Workload `json:"workloads,omitempty"`
	Objects     []string                        `json:"objects,omitempty"`
	Problems    []string                        `json:"problems,omitempty"`
	Allocations []string                        `json:"allocations,omitempty"`
}

func renderEdit(t testing.TB, e federation.Edit, missing []config.Change) []byte {
	t.Helper()
	out := editText{Services: map[string]*federation.Shard{}, Workloads: map[string]*federation.Workload{}}
	for key, s := range e.Services.Set {
		out.Services[key.String()] = s
	}
	for key, w := range e.Workloads.Set {
		out.Workloads[key.String()] = w
	}
	for _, o := range e.Objects.Set {
		text := o.Key.Kind + " " + o.Key.Namespace + "/" + o.Key.Name
		if len(o.Names) > 0 {
			text += " names " + strings.Join(o.Names, " ")
		}
		if len(o.ProxyLabels) > 0 {
			text += " labels " + strings.Join(o.ProxyLabels, " ")
		}
		out.Objects = append(out.Objects, text)
	}
	for _, p := range e.Problems.Set {
		out.Problems = append(out.Problems, fmt.Sprintf("%s: %s %s: %s", p.Code, p.Object, p.Field, p.Message))
	}
	for _, c := range missing {
		out.Allocations = append(out.Allocations, c.Key.Namespace+"/"+c.Key.Name)
	}
	slices.Sort(out.Objects)
	slices.Sort(out.Problems)
	data, err := yaml.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestTranslations compares the edits that follow from the configuration of scenarios.
func TestTranslations(t *testing.T) {
	federationtest.Each(t, func(t *testing.T, s *federationtest.Scenario) {
		s.Compare(t, "want/translation.yaml", renderEdit(t, s.Edit, s.Config.MissingAllocations()))
	})
}
