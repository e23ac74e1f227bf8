package envoy

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// exportName begins the names by which DestinationRules are found that are
// exported to single namespaces: export:NAMESPACE.
const exportName = "export:"

func ruleOf(o *federation.Object) (*networking.DestinationRule, bool) {
	if o.Key.Of() != destinationRuleKind {
		return nil, false
	}
	rule, ok := o.Spec.(*networking.DestinationRule)
	return rule, ok
}

// hostsOfRule are the hostnames and wildcards of which the rule speaks.
func hostsOfRule(o *federation.Object) []string {
	return slices.DeleteFunc(slices.Clone(o.Names), func(name string) bool { return strings.HasPrefix(name, exportName) })
}

// hasOwnRules tells that proxies of the namespace may have rules that others do
// not see: it has some itself, or some are exported to it by name.
func hasOwnRules(namespace string, r *federation.Reader) bool {
	return !none(r.ObjectsIn(destinationRuleKind, namespace)) || !none(r.ObjectsNamed(destinationRuleKind, exportName+namespace))
}

func none(objects iter.Seq[*federation.Object]) bool {
	for range objects {
		return false
	}
	return true
}

// callers are proxies that see the same rules.
type callers struct {
	namespace string // empty: those of any, who see what everyone does
	labels    func(map[string]string) bool
}

func everyCaller() callers {
	return callers{labels: func(want map[string]string) bool { return len(want) == 0 }}
}

// callers are the facet's proxies. What stands for many namespaces is built by
// the rules that everyone sees; scopeOwn has what a namespace sees beside these.
func (b *builder) callers() callers {
	switch b.facet.Scope {
	case scopeOwn, scopeRoutes, scopeProxyRoutes, scopeGateway, scopeTargets:
		return callers{namespace: b.facet.Namespace, labels: b.facet.hasLabels}
	}
	return everyCaller()
}

// ruledHere tells that the facet is the one that makes the service's clusters: a
// facet of a namespace's own rules makes those only for which the namespace has
// rules that others do not see.
func (b *builder) ruledHere(s *federation.Service) bool {
	return b.facet.Scope != scopeOwn || !slices.Equal(b.rulesFor(s, b.callers()), b.rulesFor(s, everyCaller()))
}

// rulesFor finds the rules about the service for the callers, the oldest first:
// those of the callers' namespace, else those that the service's namespace
// exports to them, else those that the root namespace does. In the root
// namespace itself its rules for everyone are not the callers' own.
func (b *builder) rulesFor(s *federation.Service, c callers) []*federation.Object {
	root := b.reader.Mesh().Root()
	hosts := federation.Wildcards(s.Key.Hostname)
	seen := make([][]*federation.Object, 0, len(hosts)) // of each host that was looked up
	for i, namespace := range []string{c.namespace, s.Key.Namespace, root} {
		if namespace == "" {
			continue
		}
		shared := i == 0 && namespace == root
		for h, host := range hosts {
			if h == len(seen) {
				seen = append(seen, b.rulesSeen(host, c))
			}
			var rules []*federation.Object
			for _, o := range seen[h] {
				if o.Key.Namespace == namespace && (!shared || !forEveryone(o)) {
					rules = append(rules, o)
				}
			}
			if len(rules) > 0 {
				return firstRules(rules)
			}
		}
	}
	return nil
}

// rulesSeen are the rules of exactly that host that the callers see.
func (b *builder) rulesSeen(host string, c callers) []*federation.Object {
	var rules []*federation.Object
	for o := range b.reader.ObjectsNamed(destinationRuleKind, host) {
		if c.see(o) {
			rules = append(rules, o)
		}
	}
	return rules
}

// see tells that the rule is for the callers: those that select anybody do so in
// their own namespace only.
func (c callers) see(o *federation.Object) bool {
	rule, ok := ruleOf(o)
	if !ok {
		return false
	}
	if selector := rule.GetWorkloadSelector(); selector != nil {
		return o.Key.Namespace == c.namespace && c.labels(selector.GetMatchLabels())
	}
	return exported(rule, o.Key.Namespace, c.namespace)
}

func forEveryone(o *federation.Object) bool {
	rule, ok := ruleOf(o)
	return ok && rule.GetWorkloadSelector() == nil && (len(rule.GetExportTo()) == 0 || slices.Contains(rule.GetExportTo(), "*"))
}

// firstRules keeps those of the rules of one host that hold together, the oldest
// first: those with the selector of the oldest that selects anybody, else those
// that select nobody.
func firstRules(rules []*federation.Object) []*federation.Object {
	slices.SortFunc(rules, func(o, p *federation.Object) int {
		return cmp.Or(compareTrueFirst(selects(o), selects(p)), compareTrueFirst(o.Older(p), p.Older(o)))
	})
	return slices.DeleteFunc(rules, func(o *federation.Object) bool { return !sameSelector(o, rules[0]) })
}

func selects(o *federation.Object) bool {
	rule, _ := ruleOf(o)
	return rule.GetWorkloadSelector() != nil
}

func sameSelector(o, p *federation.Object) bool {
	a, _ := ruleOf(o)
	b, _ := ruleOf(p)
	return selects(o) == selects(p) && maps.Equal(a.GetWorkloadSelector().GetMatchLabels(), b.GetWorkloadSelector().GetMatchLabels())
}

// exported tells that callers in a namespace see the rule of another.
func exported(rule *networking.DestinationRule, from, to string) bool {
	if len(rule.GetExportTo()) == 0 {
		return true
	}
	for _, target := range rule.GetExportTo() {
		if target == "*" || to != "" && (target == to || target == "." && from == to) {
			return true
		}
	}
	return false
}

// subsetNames are those of which any rule speaks, whoever may see it.
func subsetNames(host federation.Hostname, s *federation.Snapshot) []string {
	var names []string
	for _, name := range federation.Wildcards(host) {
		for o := range s.ObjectsNamed(destinationRuleKind, name) {
			rule, _ := ruleOf(o)
			for _, subset := range rule.GetSubsets() {
				if subset.GetName() != "" {
					names = append(names, subset.GetName())
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
