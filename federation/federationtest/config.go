package federationtest

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// applyConfig translates the manifests of the present step as the hub does.
func (s *Scenario) applyConfig(t testing.TB) {
	t.Helper()
	var events []config.Event
	for _, o := range s.manifests(t, "config") {
		if s.takeIngress(o.Key, o) {
			continue
		}
		old, _ := s.Config.Object(o.Key)
		events = append(events, config.Event{Old: old, New: o})
	}
	for _, o := range s.manifests(t, "delete") {
		if s.takeIngress(o.Key, nil) {
			continue
		}
		old, known := s.Config.Object(o.Key)
		if !known {
			t.Fatalf("%s: section %sdelete: there is no %s", s.Name, s.at, o.Key)
		}
		events = append(events, config.Event{Old: old})
	}
	s.configure(events)
}

func (s *Scenario) configure(events []config.Event) {
	if len(events) == 0 {
		return
	}
	s.Config, s.Edit = s.Config.Next(events, s.Config.Revision()+1)
	s.update(s.Edit)
}

// Configure adds an object to the present step, or replaces the one of its key.
func (s *Scenario) Configure(o *config.Object) {
	old, _ := s.Config.Object(o.Key)
	s.configure([]config.Event{{Old: old, New: o}})
	s.applyIngresses()
	s.applyGatewayAPI()
}

// update is an edit of the configuration.
func (s *Scenario) update(e federation.Edit) {
	if s.objects == nil {
		s.objects = s.Aggregate.Open(s.Config.Source())
	}
	s.objects.Update(e)
}

// manifests are those of the section FOLDER.yaml, and of FOLDER/CLUSTER.yaml those for the proxies
// of a cluster alone.
func (s *Scenario) manifests(t testing.TB, folder string) []*config.Object {
	t.Helper()
	var all []*config.Object
	for _, f := range s.archive.Files {
		of, found := strings.CutPrefix(f.Name, s.at+folder)
		if !found {
			continue
		}
		of, _ = strings.CutSuffix(strings.TrimPrefix(of, "/"), ".yaml")
		for text := range strings.SplitSeq(string(f.Data), "---\n") {
			all = append(all, s.manifest(t, text, federation.ClusterID(of)))
		}
	}
	return all
}

func (s *Scenario) manifest(t testing.TB, text string, of federation.ClusterID) *config.Object {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v in\n%s", s.Name, err, text)
	}
	var head struct {
		APIVersion, Kind string
		Metadata         struct{ Name, Namespace string }
	}
	if err := json.Unmarshal(data, &head); err != nil {
		t.Fatalf("%s: %v in\n%s", s.Name, err, text)
	}
	group, _, grouped := strings.Cut(head.APIVersion, "/")
	if !grouped {
		group = ""
	}
	if head.APIVersion == "" || head.Kind == "" || head.Metadata.Name == "" {
		t.Fatalf("%s: a manifest needs apiVersion, kind and metadata.name:\n%s", s.Name, text)
	}
	return &config.Object{
		Key: federation.ObjectKey{
			Group: group, Kind: head.Kind, Namespace: head.Metadata.Namespace,
			Name: head.Metadata.Name, Cluster: of,
		},
		APIVersion: head.APIVersion, Revision: s.Config.Revision() + 1, Manifest: data,
	}
}

// applyKeys takes what keys of tokens were fetched.
func (s *Scenario) applyKeys(t testing.TB) {
	t.Helper()
	data, ok := s.Section("keys.yaml")
	if !ok {
		return
	}
	var sets []struct {
		URI, Keys, Problem string
		OpenID             bool
	}
	decode(t, "keys.yaml", data, &sets)
	e := federation.Edit{}
	e.KeySets.Set = map[federation.KeySource]federation.KeySet{}
	for _, set := range sets {
		e.KeySets.Set[federation.KeySource{URI: set.URI, OpenID: set.OpenID}] = federation.KeySet{Keys: set.Keys, Problem: set.Problem}
	}
	s.operator(e)
}

// applyNames takes what names of gateways are resolved to.
func (s *Scenario) applyNames(t testing.TB) {
	t.Helper()
	data, ok := s.Section("names.yaml")
	if !ok {
		return
	}
	e := federation.Edit{}
	e.Resolved.Set = map[federation.Hostname][]netip.Addr{}
	decode(t, "names.yaml", data, &e.Resolved.Set)
	s.operator(e)
}
