package validation

import (
	"strings"

	api "istio.io/api/security/v1beta1"

	"isthmus.dev/isthmus/federation/config/schema"
)

var authorizationRules = []rule[*api.AuthorizationPolicy]{
	{"provider", schema.Required, func(p *api.AuthorizationPolicy) string {
		return when(p.GetAction() == api.AuthorizationPolicy_CUSTOM && p.GetProvider().GetName() == "",
			"action CUSTOM asks a provider: write provider.name")
	}},
	{"provider", schema.Forbidden, func(p *api.AuthorizationPolicy) string {
		return when(p.GetAction() != api.AuthorizationPolicy_CUSTOM && p.GetProvider() != nil,
			"only action CUSTOM asks a provider: write CUSTOM, or remove it")
	}},
	{"rules", schema.Required, func(p *api.AuthorizationPolicy) string {
		return when(p.GetAction() == api.AuthorizationPolicy_CUSTOM && len(p.GetRules()) == 0,
			"say for which requests the provider is asked; {} is all")
	}},
	{"rules", schema.Required, func(p *api.AuthorizationPolicy) string {
		return when(p.GetAction() == api.AuthorizationPolicy_DENY && len(p.GetRules()) == 0,
			"without rules nothing is denied: write them; {} is all")
	}},
}

// AuthorizationPolicy checks a spec of the kind.
func AuthorizationPolicy(_ string, p *api.AuthorizationPolicy) []Problem {
	at := spec
	found := append(apply(at, p, authorizationRules), attachment(at, p)...)
	if p.GetAction() == api.AuthorizationPolicy_CUSTOM {
		found = append(found, each(at.field("rules"), p.GetRules(), customRule)...)
	}
	return append(found, each(at.field("rules"), p.GetRules(), func(at path, r *api.Rule) []Problem {
		found := each(at.field("from"), r.GetFrom(),
			func(at path, f *api.Rule_From) []Problem { return source(at.field("source"), f.GetSource()) })
		found = append(found, each(at.field("to"), r.GetTo(),
			func(at path, t *api.Rule_To) []Problem { return operation(at.field("operation"), t.GetOperation()) })...)
		return append(found, each(at.field("when"), r.GetWhen(), condition)...)
	})...)
}

// customRule reports what a proxy cannot tell before it asks a provider: who the
// caller is.
func customRule(at path, r *api.Rule) []Problem {
	const message = "action CUSTOM cannot depend on it: remove it, or write the rule in a policy with another action"
	found := each(at.field("from"), r.GetFrom(), func(at path, f *api.Rule_From) []Problem {
		var found []Problem
		s := f.GetSource()
		for _, p := range []part{
			{"principals", s.GetPrincipals(), nil},
			{"notPrincipals", s.GetNotPrincipals(), nil},
			{"requestPrincipals", s.GetRequestPrincipals(), nil},
			{"notRequestPrincipals", s.GetNotRequestPrincipals(), nil},
			{"namespaces", s.GetNamespaces(), nil},
			{"notNamespaces", s.GetNotNamespaces(), nil},
		} {
			found = append(found, problem(at.field("source").field(p.field), schema.NotSupported, when(len(p.values) > 0, message))...)
		}
		return found
	})
	return append(found, each(at.field("when"), r.GetWhen(), func(at path, c *api.Condition) []Problem {
		key := c.GetKey()
		return problem(at.field("key"), schema.NotSupported, when(key == "source.namespace" || key == "source.principal" ||
			strings.HasPrefix(key, "request.auth."), message))
	})...)
}

// part is a field of a source or an operation: a list of texts.
type part struct {
	field  string
	values []string
	check  func(string) string
}

// parts checks lists of which at least one has to be there.
func parts(at path, all []part) []Problem {
	some := false
	var found []Problem
	for _, p := range all {
		some = some || len(p.values) > 0
		found = append(found, texts(at.field(p.field), p.values, func(text string) string {
			if text == "" {
				return "a text is empty, which nothing matches: write it, or remove the item"
			}
			return p.check(text)
		})...)
	}
	return append(found, problem(at, schema.Required, when(!some, "nothing is matched: write at least one field, or remove the item"))...)
}

func anything(string) string { return "" }

func source(at path, s *api.Source) []Problem {
	return parts(at, []part{
		{"principals", s.GetPrincipals(), anything},
		{"notPrincipals", s.GetNotPrincipals(), anything},
		{"requestPrincipals", s.GetRequestPrincipals(), anything},
		{"notRequestPrincipals", s.GetNotRequestPrincipals(), anything},
		{"namespaces", s.GetNamespaces(), anything},
		{"notNamespaces", s.GetNotNamespaces(), anything},
		{"serviceAccounts", s.GetServiceAccounts(), serviceAccount},
		{"notServiceAccounts", s.GetNotServiceAccounts(), serviceAccount},
		{"ipBlocks", s.GetIpBlocks(), subnet},
		{"notIpBlocks", s.GetNotIpBlocks(), subnet},
		{"remoteIpBlocks", s.GetRemoteIpBlocks(), subnet},
		{"notRemoteIpBlocks", s.GetNotRemoteIpBlocks(), subnet},
		{"trustDomains", s.GetTrustDomains(), anything},
		{"notTrustDomains", s.GetNotTrustDomains(), anything},
	})
}

// serviceAccount accepts NAME and NAMESPACE/NAME.
func serviceAccount(text string) string {
	namespace, name, scoped := strings.Cut(text, "/")
	wrong := strings.Contains(text, "*") || strings.Contains(name, "/") || scoped && (namespace == "" || name == "")
	return when(wrong, "%q is not a service account: write NAME or NAMESPACE/NAME, without *", text)
}

func operation(at path, o *api.Operation) []Problem {
	return parts(at, []part{
		{"hosts", o.GetHosts(), anything},
		{"notHosts", o.GetNotHosts(), anything},
		{"ports", o.GetPorts(), portText},
		{"notPorts", o.GetNotPorts(), portText},
		{"methods", o.GetMethods(), anything},
		{"notMethods", o.GetNotMethods(), anything},
		{"paths", o.GetPaths(), pathTemplate},
		{"notPaths", o.GetNotPaths(), pathTemplate},
	})
}

// pathTemplate checks a path with {*} or {**}: each is a whole segment, {**} is
// the last one of the two, and nothing else has braces or *. Braces have no other use.
func pathTemplate(text string) string {
	if !strings.ContainsAny(text, "{}") {
		return ""
	}
	wrong, last := false, false
	for segment := range strings.SplitSeq(text, "/") {
		operator := segment == "{*}" || segment == "{**}"
		wrong = wrong || !operator && strings.ContainsAny(segment, "{}*") || operator && last
		last = last || segment == "{**}"
	}
	return when(wrong,
		"%q is not a path template: {*} and {**} are whole segments, {**} is the last of them, and there is no other * or brace", text)
}

// attributes are the keys of conditions, with the check of their values.
var attributes = map[string]func(string) string{
	"source.ip": subnet, "remote.ip": subnet, "destination.ip": subnet, "destination.port": portText,
	"source.namespace": anything, "source.principal": anything, "source.serviceAccount": serviceAccount, "source.trustDomain": anything,
	"request.auth.principal": anything, "request.auth.audiences": anything, "request.auth.presenter": anything, "connection.sni": anything,
}

func condition(at path, c *api.Condition) []Problem {
	check, known := attributes[c.GetKey()]
	named := false
	for _, prefix := range []string{"request.headers[", "request.auth.claims[", "experimental.envoy.filters."} {
		rest, has := strings.CutPrefix(c.GetKey(), prefix)
		named = named || has && rest != "" && rest != "]" && (strings.HasSuffix(rest, "]") || !strings.HasSuffix(prefix, "["))
	}
	if !known {
		check = anything
	}
	found := problem(at.field("key"), schema.NotSupported, when(!known && !named,
		"%q is not an attribute: write one such as source.ip, source.namespace, request.headers[NAME] or request.auth.claims[NAME]", c.GetKey()))
	found = append(found, problem(at, schema.Required, when(len(c.GetValues())+len(c.GetNotValues()) == 0, "write values or notValues"))...)
	found = append(found, texts(at.field("values"), c.GetValues(), check)...)
	return append(found, texts(at.field("notValues"), c.GetNotValues(), check)...)
}
