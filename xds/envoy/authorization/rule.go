package authorization

import (
	"fmt"
	"strings"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	security "istio.io/api/security/v1"
)

// compiler makes policies of Envoy of the rules of one policy.
type compiler struct {
	allows    bool // its action is ALLOW: what is wrong has a rule match less, else more
	tcp       bool // for connections, of which no request is known
	namespace string
	domains   []string
	// unverified: certificates of callers prove nothing.
	unverified bool
	effect     string // of a value that is wrong
	wrong      []Problem
}

// effects are what the rules of each action do where a value is wrong.
var effects = map[security.AuthorizationPolicy_Action]string{
	allow: "matches nothing", deny: "denies whatever is there", audit: "marks whatever is there",
	custom: "asks the provider whatever is there",
}

// Problem is a value that cannot be compiled.
type Problem struct{ Path, Message string }

// Problems are the values of a policy that cannot be compiled, and what their rules match
// instead.
func Problems(spec *security.AuthorizationPolicy) []Problem {
	c := &compiler{allows: spec.GetAction() == allow, effect: effects[spec.GetAction()]}
	for i, rule := range spec.GetRules() {
		c.rule(fmt.Sprintf("rules[%d]", i), rule)
	}
	return c.wrong
}

func (c *compiler) report(at, format string, args ...any) {
	c.wrong = append(c.wrong, Problem{at, fmt.Sprintf(format, args...) + "; the rule " + c.effect})
}

// logic combines matches of Envoy.
type logic[M any] struct {
	and, or func([]M) M
	not     func(M) M
	always  M
}

//nolint:dupl // two messages of one shape
var permissions = logic[*rbacv3.Permission]{
	and: func(all []*rbacv3.Permission) *rbacv3.Permission {
		return &rbacv3.Permission{Rule: &rbacv3.Permission_AndRules{AndRules: &rbacv3.Permission_Set{Rules: all}}}
	},
	or: func(all []*rbacv3.Permission) *rbacv3.Permission {
		return &rbacv3.Permission{Rule: &rbacv3.Permission_OrRules{OrRules: &rbacv3.Permission_Set{Rules: all}}}
	},
	not: func(p *rbacv3.Permission) *rbacv3.Permission {
		return &rbacv3.Permission{Rule: &rbacv3.Permission_NotRule{NotRule: p}}
	},
	always: &rbacv3.Permission{Rule: &rbacv3.Permission_Any{Any: true}},
}

//nolint:dupl // see permissions
var principals = logic[*rbacv3.Principal]{
	and: func(all []*rbacv3.Principal) *rbacv3.Principal {
		return &rbacv3.Principal{Identifier: &rbacv3.Principal_AndIds{AndIds: &rbacv3.Principal_Set{Ids: all}}}
	},
	or: func(all []*rbacv3.Principal) *rbacv3.Principal {
		return &rbacv3.Principal{Identifier: &rbacv3.Principal_OrIds{OrIds: &rbacv3.Principal_Set{Ids: all}}}
	},
	not: func(p *rbacv3.Principal) *rbacv3.Principal {
		return &rbacv3.Principal{Identifier: &rbacv3.Principal_NotId{NotId: p}}
	},
	always: &rbacv3.Principal{Identifier: &rbacv3.Principal_Any{Any: true}},
}

// combined is the only match, or the combination of several.
func combined[M any](all []M, combine func([]M) M) M {
	if len(all) == 1 {
		return all[0]
	}
	return combine(all)
}

// field is what a rule says about one thing: it is one of the values and none of the others.
type field[M any] struct {
	at, notAt     string // the paths of the lists
	values, other []string
	http          bool // requests have it, connections do not
	match         func(string) (M, error)
}

// rule is the policy of Envoy for a rule; nil: it must not match anything. A rule matches
// if one of its sources, one of its operations and all of its conditions do.
func (c *compiler) rule(at string, r *security.Rule) *rbacv3.Policy {
	of, from, sound := c.conditions(at, r.GetWhen())
	var operations []*rbacv3.Permission
	for i, to := range r.GetTo() {
		fields := c.operation(fmt.Sprintf("%s.to[%d].operation", at, i), to.GetOperation())
		sound = c.some(fmt.Sprintf("%s.to[%d]", at, i), len(fields)) && sound
		m, ok := conjunction(c, permissions, append(fields, of...))
		operations, sound = append(operations, m), sound && ok
	}
	if len(r.GetTo()) == 0 {
		m, ok := conjunction(c, permissions, of)
		operations, sound = append(operations, m), sound && ok
	}
	var sources []*rbacv3.Principal
	for i, source := range r.GetFrom() {
		fields := c.source(fmt.Sprintf("%s.from[%d].source", at, i), source.GetSource())
		sound = c.some(fmt.Sprintf("%s.from[%d]", at, i), len(fields)) && sound
		m, ok := conjunction(c, principals, append(fields, from...))
		sources, sound = append(sources, m), sound && ok
	}
	if len(r.GetFrom()) == 0 {
		m, ok := conjunction(c, principals, from)
		sources, sound = append(sources, m), sound && ok
	}
	if c.allows && !sound {
		return nil
	}
	return &rbacv3.Policy{Permissions: operations, Principals: sources}
}

// some reports whether an item of a list says anything. One that does not is a mistake, and
// not everything.
func (c *compiler) some(at string, fields int) bool {
	if fields == 0 {
		c.report(at, "it has no fields: write at least one, or remove the item")
	}
	return fields > 0
}

// conjunction matches what all fields match. What a denial cannot compile it does not look
// at; it is not sound then.
func conjunction[M any](c *compiler, l logic[M], fields []field[M]) (all M, sound bool) {
	var and []M
	sound = true
	for _, f := range fields {
		matched, whole := matches(c, f, f.at, f.values)
		others, none := matches(c, f, f.notAt, f.other)
		sound = sound && whole && none
		if whole && len(matched) > 0 {
			and = append(and, combined(matched, l.or))
		}
		if len(others) > 0 {
			and = append(and, l.not(combined(others, l.or)))
		}
	}
	if len(and) == 0 {
		return l.always, sound
	}
	return combined(and, l.and), sound
}

// matches are those of the values that can be compiled; whole: all of them.
func matches[M any](c *compiler, f field[M], at string, values []string) (found []M, whole bool) {
	if c.tcp && f.http {
		return nil, len(values) == 0
	}
	whole = true
	for i, value := range values {
		m, err := f.match(value)
		if err == nil && value == "" {
			err = errEmpty
		}
		if err != nil {
			c.report(fmt.Sprintf("%s[%d]", at, i), "%v", err)
			whole = false
			continue
		}
		found = append(found, m)
	}
	return found, whole
}

// said are the fields that say something.
func said[M any](at string, all []field[M]) []field[M] {
	var some []field[M]
	for _, f := range all {
		if len(f.values)+len(f.other) > 0 {
			f.notAt = at + ".not" + strings.ToUpper(f.at[:1]) + f.at[1:]
			f.at = at + "." + f.at
			some = append(some, f)
		}
	}
	return some
}

func (c *compiler) operation(at string, o *security.Operation) []field[*rbacv3.Permission] {
	return said(at, []field[*rbacv3.Permission]{
		{at: "hosts", values: o.GetHosts(), other: o.GetNotHosts(), http: true, match: host},
		{at: "ports", values: o.GetPorts(), other: o.GetNotPorts(), match: port},
		{at: "methods", values: o.GetMethods(), other: o.GetNotMethods(), http: true, match: method},
		{at: "paths", values: o.GetPaths(), other: o.GetNotPaths(), http: true, match: path},
	})
}

func (c *compiler) source(at string, s *security.Source) []field[*rbacv3.Principal] {
	return said(at, []field[*rbacv3.Principal]{
		{at: "principals", values: s.GetPrincipals(), other: s.GetNotPrincipals(), match: c.principal},
		{at: "requestPrincipals", values: s.GetRequestPrincipals(), other: s.GetNotRequestPrincipals(), http: true, match: requestPrincipal},
		{at: "namespaces", values: s.GetNamespaces(), other: s.GetNotNamespaces(), match: c.namespaceOf},
		{at: "serviceAccounts", values: s.GetServiceAccounts(), other: s.GetNotServiceAccounts(), match: c.serviceAccount},
		{at: "ipBlocks", values: s.GetIpBlocks(), other: s.GetNotIpBlocks(), match: peerAddress},
		{at: "remoteIpBlocks", values: s.GetRemoteIpBlocks(), other: s.GetNotRemoteIpBlocks(), match: callerAddress},
		{at: "trustDomains", values: s.GetTrustDomains(), other: s.GetNotTrustDomains(), match: c.trustDomain},
	})
}

// serverName is the key of the condition about the name that a TLS connection asks for.
const serverName = "connection.sni"

// conditions are the fields of operations and of sources that conditions look at.
func (c *compiler) conditions(at string, when []*security.Condition) (of []field[*rbacv3.Permission],
	from []field[*rbacv3.Principal], sound bool,
) {
	sound = true
	for i, condition := range when {
		at := fmt.Sprintf("%s.when[%d]", at, i)
		operation := field[*rbacv3.Permission]{
			at: at + ".values", notAt: at + ".notValues", values: condition.GetValues(),
			other: condition.GetNotValues(),
		}
		source := field[*rbacv3.Principal]{at: operation.at, notAt: operation.notAt, values: operation.values, other: operation.other}
		switch key := condition.GetKey(); {
		case len(operation.values)+len(operation.other) == 0:
			c.report(at, "it has neither values nor notValues")
			sound = false
		case key == "destination.ip":
			operation.match = address
		case key == "destination.port":
			operation.match = port
		case key == serverName:
			operation.match = sni
		case strings.HasPrefix(key, metadataPrefix):
			operation.match = metadata(key)
		case key == "source.ip":
			source.match = peerAddress
		case key == "remote.ip":
			source.match = callerAddress
		case key == "source.namespace":
			source.match = c.namespaceOf
		case key == "source.principal":
			source.match = c.principal
		case key == "source.serviceAccount":
			source.match = c.serviceAccount
		case key == "source.trustDomain":
			source.match = c.trustDomain
		case strings.HasPrefix(key, headerPrefix):
			source.match, source.http = header(key), true
		case strings.HasPrefix(key, tokenPrefix):
			source.match, source.http = ofToken(key), true
		default:
			c.report(at+".key", "%q is not an attribute", key)
			sound = false
		}
		if operation.match != nil {
			of = append(of, operation)
		}
		if source.match != nil {
			from = append(from, source)
		}
	}
	return of, from, sound
}
