// Package authorization compiles AuthorizationPolicies to Envoy's RBAC filters.
//
// What cannot be compiled never opens anything: an ALLOW rule with such a value matches
// nothing, and a DENY rule matches whatever the field has.
package authorization

import (
	"fmt"
	"maps"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httprbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcprbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// The actions of a policy.
const (
	allow  = security.AuthorizationPolicy_ALLOW
	deny   = security.AuthorizationPolicy_DENY
	audit  = security.AuthorizationPolicy_AUDIT
	custom = security.AuthorizationPolicy_CUSTOM
)

// Istio's prefixes of the filters' statistics, and of rules.
const (
	tcpPrefix   = "tcp."
	triedPrefix = "istio_dry_run_"
	noProvider  = "deny-all-without-provider"
	rulePrefix  = "ns[" // of the names of all rules
)

// Policies are those that select the proxies of a facet.
type Policies struct {
	all        []policy
	domains    []string          // the trust domain of the mesh, and its other names
	providers  map[string]asking // those that can be asked, by name
	unverified bool              // certificates of callers prove nothing
	asked      []*hcmv3.HttpFilter
	http       []*hcmv3.HttpFilter
	tcp        []*listenerv3.Filter
}

type policy struct {
	object *federation.Object
	spec   *security.AuthorizationPolicy
}

// For finds the policies that select the view's proxies: those of their namespace and of
// the root namespace.
func For(v *facet.View) *Policies {
	p := &Policies{domains: v.Reader.Mesh().TrustDomains(), providers: map[string]asking{}}
	for o := range v.Policies(federation.AuthorizationPolicyKind) {
		spec, ok := o.Spec.(*security.AuthorizationPolicy)
		if !ok || !facet.Selects(spec, o.Key.Namespace, v.Facet) {
			continue
		}
		p.all = append(p.all, policy{o, spec})
		if p.all[len(p.all)-1].asks() {
			p.find(v, p.all[len(p.all)-1])
		}
	}
	return p.build()
}

// Unverified are the same policies for callers whose certificates are not verified: to them no
// caller has an identity, as if it had no certificate.
func (p *Policies) Unverified() *Policies {
	return (&Policies{all: p.all, domains: p.domains, providers: p.providers, unverified: true}).build()
}

// find finds out how the provider of the policy is asked, or says why it cannot be.
func (p *Policies) find(v *facet.View, by policy) {
	name := by.spec.GetProvider().GetName()
	a, err := askingOf(v, name)
	if err != nil {
		v.LeaveOut(resource.Reason{
			Code: resource.ReasonNoProvider, Cause: by.object.Key,
			Message: fmt.Sprintf("%s: %v; the workloads that it selects deny everything", by.object.Key.Title(), err),
		})
		return
	}
	p.providers[name] = a
}

// build makes the filters.
func (p *Policies) build() *Policies {
	for _, e := range p.engines(false) {
		rbac := resource.InHTTP(resource.RBACFilter, &httprbacv3.RBAC{Rules: e.rules, ShadowRules: e.tried, ShadowRulesStatPrefix: e.prefix})
		if a, asks := p.providers[e.asks]; asks {
			p.asked = append(p.asked, rbac, a.http)
		} else {
			p.http = append(p.http, rbac)
		}
	}
	for _, e := range p.engines(true) {
		a, asks := p.providers[e.asks]
		if asks && a.tcp == nil {
			continue // as with Istio
		}
		p.tcp = append(p.tcp, resource.Filter(resource.TCPRBACFilter, &tcprbacv3.RBAC{
			StatPrefix: tcpPrefix, Rules: e.rules, ShadowRules: e.tried, ShadowRulesStatPrefix: e.prefix,
		}))
		if asks {
			p.tcp = append(p.tcp, a.tcp)
		}
	}
	return p
}

// Requests has the policies decide about requests before anything else does, and verified
// afterwards: a provider is asked first, so that it may add the token that is verified.
func (p *Policies) Requests(m *hcmv3.HttpConnectionManager, verified func(*hcmv3.HttpConnectionManager)) {
	m.HttpFilters = slices.Concat(p.http, m.HttpFilters)
	verified(m)
	m.HttpFilters = slices.Concat(p.asked, m.HttpFilters)
}

// Connections has the policies decide about the connections of a chain. In a chain that
// speaks HTTP they decide about requests.
func (p *Policies) Connections(chain *listenerv3.FilterChain) {
	if chain.GetFilters()[0].GetName() != resource.HTTPFilter {
		chain.Filters = slices.Concat(p.tcp, chain.GetFilters())
	}
}

// Made notes that the chain is made of the policies.
func (p *Policies) Made(v *facet.View, chain *listenerv3.FilterChain) {
	for _, policy := range p.all {
		v.CausedBy(policy.object, chain.GetFilters()[0])
	}
}

// AskServerName reports whether a policy looks at the name of the server that a TLS
// connection asks for.
func (p *Policies) AskServerName() bool {
	return slices.ContainsFunc(p.all, func(p policy) bool {
		return slices.ContainsFunc(p.spec.GetRules(), func(r *security.Rule) bool {
			return slices.ContainsFunc(r.GetWhen(), func(c *security.Condition) bool { return c.GetKey() == serverName })
		})
	})
}

// engine is what one filter enforces, and what it only tries.
type engine struct {
	rules, tried *rbacv3.RBAC
	prefix       string // of the statistics of what is tried
	asks         string // the provider that is asked about what it tries; empty: none
}

// engines are those of all policies in the order in which Istio evaluates them.
func (p *Policies) engines(tcp bool) []engine {
	var all []engine
	if slices.ContainsFunc(p.all, p.lacksProvider) {
		// As with Istio, a provider that cannot be asked refuses everything.
		everything := &rbacv3.Policy{Permissions: []*rbacv3.Permission{permissions.always}, Principals: []*rbacv3.Principal{principals.always}}
		all = append(all, engine{rules: &rbacv3.RBAC{Action: rbacv3.RBAC_DENY, Policies: map[string]*rbacv3.Policy{noProvider: everything}}})
	}
	for _, name := range slices.Sorted(maps.Keys(p.providers)) {
		tried := &rbacv3.RBAC{Action: rbacv3.RBAC_DENY, Policies: map[string]*rbacv3.Policy{}}
		for _, policy := range p.all {
			if policy.asks() && policy.spec.GetProvider().GetName() == name {
				maps.Copy(tried.Policies, p.compile(policy, tcp))
			}
		}
		all = append(all, engine{tried: tried, prefix: matchedKey(name), asks: name})
	}
	for _, of := range []struct {
		action security.AuthorizationPolicy_Action
		rbac   rbacv3.RBAC_Action
		prefix string
	}{{audit, rbacv3.RBAC_LOG, ""}, {deny, rbacv3.RBAC_DENY, triedPrefix + "deny_"}, {allow, rbacv3.RBAC_ALLOW, triedPrefix + "allow_"}} {
		var e engine
		for _, policy := range p.all {
			if policy.spec.GetAction() != of.action {
				continue
			}
			into := &e.rules
			if policy.object.DryRun && of.prefix != "" {
				into, e.prefix = &e.tried, of.prefix
			}
			if *into == nil {
				*into = &rbacv3.RBAC{Action: of.rbac, Policies: map[string]*rbacv3.Policy{}}
			}
			maps.Copy((*into).Policies, p.compile(policy, tcp))
		}
		if e.rules != nil || e.tried != nil {
			all = append(all, e)
		}
	}
	return all
}

// asks reports whether the policy leaves the decision to a provider.
func (p policy) asks() bool {
	switch p.spec.GetAction() {
	case allow, deny, audit:
		return false
	}
	return true
}

// lacksProvider reports whether the policy leaves the decision to a provider that cannot be asked.
func (p *Policies) lacksProvider(of policy) bool {
	_, has := p.providers[of.spec.GetProvider().GetName()]
	return of.asks() && !has
}

// compile makes a policy of Envoy of each rule, under Istio's names. One that allows and
// has no rules matches nothing, so that it has everything denied.
func (p *Policies) compile(from policy, tcp bool) map[string]*rbacv3.Policy {
	c := &compiler{
		allows: from.spec.GetAction() == allow, tcp: tcp, namespace: from.object.Key.Namespace,
		domains: p.domains, unverified: p.unverified,
	}
	compiled := map[string]*rbacv3.Policy{}
	for i, rule := range from.spec.GetRules() {
		if of := c.rule(fmt.Sprintf("rules[%d]", i), rule); of != nil {
			compiled[fmt.Sprintf(rulePrefix+"%s]-policy[%s]-rule[%d]", from.object.Key.Namespace, from.object.Key.Name, i)] = of
		}
	}
	return compiled
}
