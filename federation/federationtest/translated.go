package federationtest

import (
	"fmt"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
	"isthmus.dev/isthmus/federation/config/ingress"
)

// translated is what objects of other APIs mean in the present step.
type translated struct {
	objects  map[federation.ObjectKey]*config.Object
	problems []string // names of what is wrong with these
}

// takeIngress keeps an Ingress or IngressClass, or forgets it; false: the object is not one.
func (s *Scenario) takeIngress(key federation.ObjectKey, o *config.Object) bool {
	switch {
	case key.Group != "networking.k8s.io":
		return false
	case o == nil:
		delete(s.read, key)
	default:
		s.read[key] = o
	}
	return true
}

// applyIngresses adds what Ingresses mean in the present step.
func (s *Scenario) applyIngresses() {
	keys := slices.SortedFunc(maps.Keys(s.read), federation.ObjectKey.Compare)
	var read []*config.Object
	for _, key := range keys {
		read = append(read, s.read[key])
	}
	objects, problems := ingress.Translate(s.Config, s.Snapshot(), read)
	s.setTranslated(&s.ingresses, objects, problems)
}

// applyGatewayAPI adds what the objects of the Gateway API mean in the present step.
func (s *Scenario) applyGatewayAPI() {
	objects, problems := gatewayapi.Translate(s.Snapshot())
	s.setTranslated(&s.gatewayAPI, objects, problems)
}

// setTranslated replaces what other objects mean.
func (s *Scenario) setTranslated(t *translated, objects []*config.Object, problems []config.Problem) {
	now := map[federation.ObjectKey]*config.Object{}
	var events []config.Event
	for _, o := range objects {
		now[o.Key], o.Revision = o, s.Config.Revision()+1
		if old := t.objects[o.Key]; old == nil || !old.Alike(o) {
			events = append(events, config.Event{Old: old, New: o})
		}
	}
	for key, old := range t.objects {
		if now[key] == nil {
			events = append(events, config.Event{Old: old})
		}
	}
	t.objects = now
	if len(events) > 0 {
		var edit federation.Edit
		s.Config, edit = s.Config.Next(events, s.Config.Revision()+1)
		s.update(edit)
	}
	s.setProblems(t, problems)
}

// setProblems replaces what is wrong with them.
func (s *Scenario) setProblems(t *translated, problems []config.Problem) {
	if len(problems) == 0 && len(t.problems) == 0 {
		return
	}
	edit := federation.Edit{Source: s.Config.Source()}
	edit.Problems.Set = map[string]federation.Problem{}
	edit.Problems.Gone = t.problems
	t.problems = nil
	for _, p := range problems {
		name := fmt.Sprint(p)
		edit.Problems.Set[name] = federation.Problem(p)
		t.problems = append(t.problems, name)
	}
	edit.Problems.Gone = slices.DeleteFunc(edit.Problems.Gone, func(name string) bool { return slices.Contains(t.problems, name) })
	s.update(edit)
}
