// Package destinationrule finds the DestinationRules of a service and translates their
// policies into Envoy's terms.
package destinationrule

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// exportName begins the names by which DestinationRules are found that are
// exported to single namespaces: export:NAMESPACE.
const exportName = "export:"

// Spec is the DestinationRule that the object holds; false: it holds none.
func Spec(o *federation.Object) (*networking.DestinationRule, bool) {
	if o.Key.Of() != federation.DestinationRuleKind {
		return nil, false
	}
	rule, ok := o.Spec.(*networking.DestinationRule)
	return rule, ok
}

// Hosts are the hostnames and wildcards of which the rule speaks.
func Hosts(o *federation.Object) []string {
	return slices.DeleteFunc(slices.Clone(o.Names), func(name string) bool { return strings.HasPrefix(name, exportName) })
}

// HasOwn reports whether proxies of the namespace may have rules that others do
// not see: it has some itself, or some are exported to it by name, as the mesh's default may.
func HasOwn(namespace string, r *federation.Reader) bool {
	return !none(r.Objects().In(federation.DestinationRuleKind, namespace)) ||
		!none(r.Objects().Named(federation.DestinationRuleKind, exportName+namespace)) ||
		slices.Contains(r.Mesh().ExportDefaults().DestinationRules, namespace)
}

func none(objects iter.Seq[*federation.Object]) bool {
	for range objects {
		return false
	}
	return true
}

// Callers are proxies that see the same rules.
type Callers struct {
	Namespace string // empty: those of any, who see what everyone does
	Labels    func(map[string]string) bool
}

// Everyone are proxies of any namespace, without labels.
func Everyone() Callers {
	return Callers{Labels: func(want map[string]string) bool { return len(want) == 0 }}
}

// Differ reports whether the callers have rules about the service that others do not see.
func Differ(s *federation.Service, c Callers, r *federation.Reader) bool {
	return !slices.Equal(For(s, c, r), For(s, Everyone(), r))
}

// For finds the rules about the service for the callers, the oldest first:
// those of the callers' namespace, else those that the service's namespace
// exports to them, else those that the root namespace does. In the root
// namespace itself its rules for everyone are not the callers' own.
func For(s *federation.Service, c Callers, r *federation.Reader) []*federation.Object {
	mesh := r.Mesh()
	root := mesh.Root()
	hosts := federation.Wildcards(s.Key.Hostname)
	seen := make([][]*federation.Object, 0, len(hosts)) // of each host that was looked up
	for i, namespace := range []string{c.Namespace, s.Key.Namespace, root} {
		if namespace == "" {
			continue
		}
		shared := i == 0 && namespace == root
		for h, host := range hosts {
			if h == len(seen) {
				seen = append(seen, rulesSeen(host, c, r))
			}
			var rules []*federation.Object
			for _, o := range seen[h] {
				if o.Key.Namespace == namespace && (!shared || !forEveryone(o, mesh)) {
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
func rulesSeen(host string, c Callers, r *federation.Reader) []*federation.Object {
	var rules []*federation.Object
	mesh := r.Mesh()
	for o := range r.Objects().Named(federation.DestinationRuleKind, host) {
		if c.see(o, mesh) {
			rules = append(rules, o)
		}
	}
	return rules
}

// see reports whether the rule is for the callers: those that select anybody do so in
// their own namespace only.
func (c Callers) see(o *federation.Object, mesh *federation.MeshSettings) bool {
	rule, ok := Spec(o)
	if !ok {
		return false
	}
	if selector := rule.GetWorkloadSelector(); selector != nil {
		return o.Key.Namespace == c.Namespace && c.Labels(selector.GetMatchLabels())
	}
	exportTo := federation.ExportTo(rule.GetExportTo(), mesh.ExportDefaults().DestinationRules)
	return federation.VisibleFrom(exportTo, o.Key.Namespace, c.Namespace)
}

// MayUse reports whether the callers use the rule where it comes first: they see it, and it is of their namespace, the
// root namespace, or that of a service of its hosts.
func (c Callers) MayUse(o *federation.Object, r *federation.Reader) bool {
	mesh := r.Mesh()
	if !c.see(o, mesh) {
		return false
	}
	return o.Key.Namespace == c.Namespace || o.Key.Namespace == mesh.Root() || slices.ContainsFunc(Hosts(o), func(host string) bool {
		_, exists := r.Spec(federation.ServiceKey{Hostname: federation.Hostname(host), Namespace: o.Key.Namespace})
		return exists || strings.HasPrefix(host, "*")
	})
}

func forEveryone(o *federation.Object, mesh *federation.MeshSettings) bool {
	rule, ok := Spec(o)
	return ok && rule.GetWorkloadSelector() == nil &&
		federation.Everywhere(federation.ExportTo(rule.GetExportTo(), mesh.ExportDefaults().DestinationRules))
}

// firstRules keeps those of the rules of one host that hold together, the oldest
// first: those with the selector of the oldest that selects anybody, else those
// without a selector.
func firstRules(rules []*federation.Object) []*federation.Object {
	slices.SortFunc(rules, func(o, p *federation.Object) int {
		return cmp.Or(resource.CompareTrueFirst(selects(o), selects(p)), resource.CompareTrueFirst(o.Older(p), p.Older(o)))
	})
	return slices.DeleteFunc(rules, func(o *federation.Object) bool { return !sameSelector(o, rules[0]) })
}

// selects reports whether the rule is for the proxies that it selects alone.
func selects(o *federation.Object) bool {
	rule, _ := Spec(o)
	return rule.GetWorkloadSelector() != nil
}

func sameSelector(o, p *federation.Object) bool {
	a, _ := Spec(o)
	b, _ := Spec(p)
	return selects(o) == selects(p) && maps.Equal(a.GetWorkloadSelector().GetMatchLabels(), b.GetWorkloadSelector().GetMatchLabels())
}

// ForSelected reports whether the rules, which hold together, are for the proxies that they
// select alone.
func ForSelected(rules []*federation.Object) bool { return len(rules) > 0 && selects(rules[0]) }

// SubsetNames are those in any rule, whatever its exportTo.
func SubsetNames(host federation.Hostname, r *federation.Reader) []string {
	var names []string
	for o := range r.Objects().For(federation.DestinationRuleKind, host) {
		rule, _ := Spec(o)
		for _, subset := range rule.GetSubsets() {
			if subset.GetName() != "" {
				names = append(names, subset.GetName())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
