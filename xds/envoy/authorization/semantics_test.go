package authorization

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	templatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"pgregory.net/rapid"

	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
)

// call is a request, or a connection.
type call struct {
	tcp                         bool
	peer                        string // without spiffe://; empty: plain text
	source, remote, destination string
	port                        int
	sni                         string
	host, method, path          string
	headers                     map[string]string
}

// What follows is what the reference of AuthorizationPolicy says, read without Envoy.

// admits reports whether policies let the call pass.
func admits(all []policy, domains []string, c call) bool {
	allowing, allowed := false, false
	for _, p := range all {
		if p.spec.GetAction() == custom {
			return false
		}
		if p.object.DryRun || p.spec.GetAction() == audit {
			continue
		}
		denies := p.spec.GetAction() == deny
		matched := slices.ContainsFunc(p.spec.GetRules(), func(r *security.Rule) bool {
			return reading{c, domains, p.object.Key.Namespace, denies}.rule(r)
		})
		if denies && matched {
			return false
		}
		allowing = allowing || !denies
		allowed = allowed || !denies && matched
	}
	return !allowing || allowed
}

// reading reads rules for a call.
type reading struct {
	call
	domains   []string
	namespace string
	denies    bool
}

// fact is what a rule says about one thing. holds tells whether a value is that of the call;
// valid whether the value means anything.
type fact struct {
	values, not []string
	http        bool
	holds       func(string) (holds, valid bool)
}

// truth of a rule: a rule that cannot be read matches nothing if it allows, and what cannot
// be read matches everything if it denies.
func (r reading) rule(rule *security.Rule) bool {
	sound := true
	when := true
	for _, c := range rule.GetWhen() {
		when = r.facts([]fact{r.condition(c)}, &sound) && when
	}
	to, from := len(rule.GetTo()) == 0, len(rule.GetFrom()) == 0
	for _, t := range rule.GetTo() {
		o := t.GetOperation()
		to = r.facts([]fact{
			{o.GetHosts(), o.GetNotHosts(), true, func(v string) (bool, bool) { return like(strings.ToLower(v), strings.ToLower(r.host)), true }},
			{o.GetPorts(), o.GetNotPorts(), false, r.isPort},
			{o.GetMethods(), o.GetNotMethods(), true, func(v string) (bool, bool) { return like(v, r.method), true }},
			{o.GetPaths(), o.GetNotPaths(), true, r.isPath},
		}, &sound) || to
	}
	for _, f := range rule.GetFrom() {
		s := f.GetSource()
		from = r.facts([]fact{
			{s.GetPrincipals(), s.GetNotPrincipals(), false, r.isPrincipal},
			{s.GetRequestPrincipals(), s.GetNotRequestPrincipals(), true, nobody},
			{s.GetNamespaces(), s.GetNotNamespaces(), false, r.isNamespace},
			{s.GetServiceAccounts(), s.GetNotServiceAccounts(), false, r.isAccount},
			{s.GetIpBlocks(), s.GetNotIpBlocks(), false, within(r.source)},
			{s.GetRemoteIpBlocks(), s.GetNotRemoteIpBlocks(), false, within(r.remote)},
			{s.GetTrustDomains(), s.GetNotTrustDomains(), false, r.isDomain},
		}, &sound) || from
	}
	return to && from && when && (sound || r.denies)
}

func (r reading) facts(all []fact, sound *bool) bool {
	holds, some := true, false
	for _, f := range all {
		if len(f.values)+len(f.not) == 0 {
			continue
		}
		some = true
		if f.http && r.tcp || f.holds == nil {
			*sound = false
			continue
		}
		one, clear := false, true
		for _, v := range f.values {
			is, valid := f.holds(v)
			one, clear = one || is, clear && valid && v != ""
		}
		if clear {
			holds = holds && (one || len(f.values) == 0)
		}
		for _, v := range f.not {
			is, valid := f.holds(v)
			clear = clear && valid && v != ""
			holds = holds && (!is || !valid || v == "")
		}
		*sound = *sound && clear
	}
	*sound = *sound && some
	return holds
}

func nobody(string) (bool, bool) { return false, true }

func (r reading) condition(c *security.Condition) fact {
	f := fact{values: c.GetValues(), not: c.GetNotValues()}
	if name, is := strings.CutPrefix(c.GetKey(), "request.headers["); is {
		name = strings.TrimSuffix(name, "]")
		f.http, f.holds = true, func(v string) (bool, bool) {
			value, has := r.headers[name]
			return has && (v == "*" || like(v, value)), !strings.Contains(name, " ")
		}
		return f
	}
	switch c.GetKey() {
	case "destination.ip":
		f.holds = within(r.destination)
	case "destination.port":
		f.holds = r.isPort
	case "connection.sni":
		f.holds = func(v string) (bool, bool) { return like(v, r.sni), true }
	case "source.ip":
		f.holds = within(r.source)
	case "remote.ip":
		f.holds = within(r.remote)
	case "source.namespace":
		f.holds = r.isNamespace
	case "source.principal":
		f.holds = r.isPrincipal
	case "source.serviceAccount":
		f.holds = r.isAccount
	case "source.trustDomain":
		f.holds = r.isDomain
	case "request.auth.principal":
		f.http, f.holds = true, nobody
	}
	return f
}

// like compares by *: presence, prefix or suffix.
func like(pattern, value string) bool {
	switch {
	case pattern == "*":
		return value != ""
	case strings.HasPrefix(pattern, "*"):
		return strings.HasSuffix(value, pattern[1:])
	case strings.HasSuffix(pattern, "*"):
		return strings.HasPrefix(value, pattern[:len(pattern)-1])
	}
	return pattern == value
}

func within(addr string) func(string) (bool, bool) {
	return func(block string) (bool, bool) {
		if !strings.Contains(block, "/") {
			block += "/32"
		}
		p, err := netip.ParsePrefix(block)
		return err == nil && p.Contains(netip.MustParseAddr(addr)), err == nil
	}
}

func (r reading) isPort(v string) (bool, bool) {
	n, err := strconv.Atoi(v)
	return n == r.port, err == nil && n > 0 && n < 1<<16
}

func (r reading) isPath(v string) (bool, bool) {
	at, _, _ := strings.Cut(r.path, "?")
	if !strings.Contains(v, "{") {
		return like(v, at), true
	}
	if strings.Contains(v, "}x") {
		return false, false
	}
	v = strings.ReplaceAll(regexp.QuoteMeta(v), `\{\*\*\}`, ".*")
	return regexp.MustCompile("^" + strings.ReplaceAll(v, `\{\*\}`, "[^/]+") + "$").MatchString(at), true
}

// identity is TRUSTDOMAIN/ns/NAMESPACE/sa/ACCOUNT.
func (r reading) identity() []string {
	if r.peer == "" {
		return make([]string, 5)
	}
	return strings.Split(r.peer, "/")
}

func (r reading) isPrincipal(v string) (bool, bool) {
	if strings.HasPrefix(v, "spiffe://") || strings.Count(v, "*") > 1 {
		return false, false
	}
	if r.peer == "" {
		return false, true
	}
	if like(v, r.peer) {
		return true, true
	}
	domain, rest, _ := strings.Cut(v, "/")
	own, others := r.identity()[0], strings.Join(r.identity()[1:], "/")
	ours := domain == "cluster.local" || slices.ContainsFunc(r.domains, func(d string) bool { return like(domain, d) })
	return strings.Count(v, "/") == 4 && ours && slices.Contains(r.domains, own) && like(rest, others), true
}

func (r reading) isNamespace(v string) (bool, bool) { return like(v, r.identity()[2]), true }

func (r reading) isDomain(v string) (bool, bool) {
	own := r.identity()[0]
	return like(v, own) || slices.Contains(r.domains, v) && slices.Contains(r.domains, own), true
}

func (r reading) isAccount(v string) (bool, bool) {
	namespace, name, scoped := strings.Cut(v, "/")
	if !scoped {
		namespace, name = r.namespace, v
	}
	return r.identity()[2] == namespace && r.identity()[4] == name, v != "" && !strings.Contains(v, "*")
}

// What follows is what Envoy does with its filters.

func passes(engines []engine, c call) bool {
	for _, e := range engines {
		if e.rules == nil || e.rules.GetAction() == rbacv3.RBAC_LOG {
			continue
		}
		matched := false
		for _, p := range e.rules.GetPolicies() {
			matched = matched || slices.ContainsFunc(p.GetPermissions(), c.permission) && slices.ContainsFunc(p.GetPrincipals(), c.principal)
		}
		if matched != (e.rules.GetAction() == rbacv3.RBAC_ALLOW) {
			return false
		}
	}
	return true
}

func (c call) permission(p *rbacv3.Permission) bool {
	switch r := p.GetRule().(type) {
	case *rbacv3.Permission_Any:
		return true
	case *rbacv3.Permission_AndRules:
		return !slices.ContainsFunc(r.AndRules.GetRules(), func(p *rbacv3.Permission) bool { return !c.permission(p) })
	case *rbacv3.Permission_OrRules:
		return slices.ContainsFunc(r.OrRules.GetRules(), c.permission)
	case *rbacv3.Permission_NotRule:
		return !c.permission(r.NotRule)
	case *rbacv3.Permission_Header:
		return c.header(r.Header)
	case *rbacv3.Permission_UrlPath:
		at, _, _ := strings.Cut(c.path, "?")
		return matchesText(r.UrlPath.GetPath(), at)
	case *rbacv3.Permission_UriTemplate:
		var config templatev3.UriTemplateMatchConfig
		if r.UriTemplate.GetTypedConfig().UnmarshalTo(&config) != nil {
			return false
		}
		at, _, _ := strings.Cut(c.path, "?")
		pattern := strings.ReplaceAll(strings.ReplaceAll(regexp.QuoteMeta(config.GetPathTemplate()), `\*\*`, ".*"), `\*`, "[^/]+")
		return regexp.MustCompile("^(?:" + pattern + ")$").MatchString(at)
	case *rbacv3.Permission_DestinationIp:
		return contains(r.DestinationIp, c.destination)
	case *rbacv3.Permission_DestinationPort:
		return int(r.DestinationPort) == c.port
	case *rbacv3.Permission_RequestedServerName:
		return matchesText(r.RequestedServerName, c.sni)
	}
	panic(p.String())
}

func (c call) principal(p *rbacv3.Principal) bool {
	switch r := p.GetIdentifier().(type) {
	case *rbacv3.Principal_Any:
		return true
	case *rbacv3.Principal_AndIds:
		return !slices.ContainsFunc(r.AndIds.GetIds(), func(p *rbacv3.Principal) bool { return !c.principal(p) })
	case *rbacv3.Principal_OrIds:
		return slices.ContainsFunc(r.OrIds.GetIds(), c.principal)
	case *rbacv3.Principal_NotId:
		return !c.principal(r.NotId)
	case *rbacv3.Principal_Authenticated_:
		return c.peer != "" && matchesText(r.Authenticated.GetPrincipalName(), "spiffe://"+c.peer)
	case *rbacv3.Principal_DirectRemoteIp:
		return contains(r.DirectRemoteIp, c.source)
	case *rbacv3.Principal_RemoteIp:
		return contains(r.RemoteIp, c.remote)
	case *rbacv3.Principal_SourcedMetadata:
		return false // no call has a token
	case *rbacv3.Principal_Header:
		return c.header(r.Header)
	}
	panic(p.String())
}

func (c call) header(h *routev3.HeaderMatcher) bool {
	value, has := c.headers[h.GetName()]
	switch {
	case c.tcp:
		panic("a connection has no " + h.GetName())
	case h.GetName() == ":authority":
		value, has = c.host, true
	case h.GetName() == ":method":
		value, has = c.method, true
	}
	return has && (h.GetPresentMatch() || matchesText(h.GetStringMatch(), value))
}

func matchesText(m *matcherv3.StringMatcher, value string) bool {
	fold := func(s string) string { return s }
	if m.GetIgnoreCase() {
		fold = strings.ToLower
	}
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.StringMatcher_Exact:
		return fold(p.Exact) == fold(value)
	case *matcherv3.StringMatcher_Prefix:
		return strings.HasPrefix(fold(value), fold(p.Prefix))
	case *matcherv3.StringMatcher_Suffix:
		return strings.HasSuffix(fold(value), fold(p.Suffix))
	case *matcherv3.StringMatcher_SafeRegex:
		return regexp.MustCompile("^(?:" + p.SafeRegex.GetRegex() + ")$").MatchString(value)
	}
	return false
}

func contains(block *corev3.CidrRange, addr string) bool {
	return netip.PrefixFrom(netip.MustParseAddr(block.GetAddressPrefix()),
		int(block.GetPrefixLen().GetValue())).Masked().Contains(netip.MustParseAddr(addr))
}

// The values that are drawn, malformed ones among them.
var (
	peers = []string{
		"", "td.example/ns/web/sa/front", "old.example/ns/web/sa/front", "c2.example/ns/web/sa/front",
		"cluster.local/ns/web/sa/front", "td.example/ns/webs/sa/back",
	}
	principalV = append([]string{
		"*", "*/sa/front", "td.example/*", "*.example/ns/web/sa/*", "*/ns/web/sa/front",
		"spiffe://td.example/ns/web/sa/front", "td.example/ns/web/sa/*",
	}, peers...)
	namespaceV = []string{"web", "web*", "*", "*s", "shop", ""}
	accountV   = []string{"front", "web/front", "webs/back", "w*b/front"}
	domainV    = []string{"td.example", "*.example", "c2*", "*", "other"}
	addresses  = []string{"10.1.0.1", "10.2.0.1", "192.0.2.1"}
	blockV     = []string{"10.1.0.0/16", "10.1.0.1", "10.0.0.0/8", "0.0.0.0/0", "10.1.0.0/99", "x"}
	hostV      = []string{"web.shop", "WEB.shop", "*.shop", "web*", "*", "api.shop"}
	portV      = []string{"80", "443", "0", "x", "8080"}
	methodV    = []string{"GET", "P*", "*", "get"}
	pathV      = []string{"/a", "/a/*", "*/b", "*", "/a/{*}", "/a/{**}", "/{*}/b", "/{*}x/b", "/a/b"}
	keys       = []string{
		"source.ip", "remote.ip", "destination.ip", "destination.port", "source.namespace", "source.principal",
		"source.serviceAccount", "source.trustDomain",
		"connection.sni", "request.headers[x]", "request.headers[a b]", "request.auth.principal", "no.such.key",
	}
	sniV = []string{"web.shop", "*.shop", "*", "api*"}
)

func some(t *rapid.T, label string, values []string) []string {
	return rapid.SliceOfN(rapid.SampledFrom(values), 0, 2).Draw(t, label)
}

// rarely is mostly nothing, so that rules match at all.
func rarely(t *rapid.T, label string, values []string) []string {
	if rapid.IntRange(0, 4).Draw(t, "has "+label) > 0 {
		return nil
	}
	return some(t, label, values)
}

func drawRule(t *rapid.T) *security.Rule {
	r := &security.Rule{}
	for range rapid.IntRange(0, 2).Draw(t, "from") {
		r.From = append(r.From, &security.Rule_From{Source: &security.Source{
			Principals: rarely(t, "principals", principalV), NotPrincipals: rarely(t, "notPrincipals", principalV),
			Namespaces: rarely(t, "namespaces", namespaceV), NotNamespaces: rarely(t, "notNamespaces", namespaceV),
			ServiceAccounts: rarely(t, "serviceAccounts", accountV), NotServiceAccounts: rarely(t, "notServiceAccounts", accountV),
			IpBlocks: rarely(t, "ipBlocks", blockV), NotIpBlocks: rarely(t, "notIpBlocks", blockV),
			RemoteIpBlocks: rarely(t, "remoteIpBlocks", blockV), NotRemoteIpBlocks: rarely(t, "notRemoteIpBlocks", blockV),
			TrustDomains: rarely(t, "trustDomains", domainV), NotTrustDomains: rarely(t, "notTrustDomains", domainV),
			RequestPrincipals: rarely(t, "requestPrincipals", []string{"*"}), NotRequestPrincipals: rarely(t, "notRequestPrincipals", []string{"*"}),
		}})
	}
	for range rapid.IntRange(0, 2).Draw(t, "to") {
		r.To = append(r.To, &security.Rule_To{Operation: &security.Operation{
			Hosts: rarely(t, "hosts", hostV), NotHosts: rarely(t, "notHosts", hostV), Ports: rarely(t, "ports", portV),
			NotPorts: rarely(t, "notPorts", portV),
			Methods:  rarely(t, "methods", methodV), NotMethods: rarely(t, "notMethods", methodV), Paths: rarely(t, "paths", pathV),
			NotPaths: rarely(t, "notPaths", pathV),
		}})
	}
	for range max(rapid.IntRange(-2, 2).Draw(t, "when"), 0) {
		key := rapid.SampledFrom(keys).Draw(t, "key")
		of := map[string][]string{
			"source.ip": blockV, "remote.ip": blockV, "destination.ip": blockV, "destination.port": portV, "source.namespace": namespaceV,
			"source.principal": principalV, "source.serviceAccount": accountV, "source.trustDomain": domainV, "connection.sni": sniV,
		}[key]
		if of == nil {
			of = []string{"*", "1", "2*"}
		}
		r.When = append(r.When, &security.Condition{Key: key, Values: some(t, "values", of), NotValues: rarely(t, "notValues", of)})
	}
	return r
}

func drawPolicies(t *rapid.T) []policy {
	var all []policy
	for range rapid.IntRange(1, 3).Draw(t, "policies") {
		spec := &security.AuthorizationPolicy{Action: rapid.SampledFrom([]security.AuthorizationPolicy_Action{
			allow, allow, deny, deny, deny,
			audit, custom,
		}).Draw(t, "action")}
		for range rapid.IntRange(0, 2).Draw(t, "rules") {
			spec.Rules = append(spec.Rules, drawRule(t))
		}
		name := strconv.Itoa(len(all))
		all = append(all, policy{&federation.Object{
			Key:    federation.ObjectKey{Namespace: "web", Name: name},
			DryRun: rapid.IntRange(0, 5).Draw(t, "dry run") == 0,
		}, spec})
	}
	return all
}

func specs(all []policy) (texts []string) {
	for _, p := range all {
		texts = append(texts, fmt.Sprintf("dry run %t: %v", p.object.DryRun, p.spec))
	}
	return texts
}

func drawCall(t *rapid.T) call {
	pick := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "of the call") }
	c := call{
		tcp: rapid.Bool().Draw(t, "tcp"), peer: pick(peers...), source: pick(addresses...), remote: pick(addresses...),
		destination: pick(addresses...),
		port:        rapid.SampledFrom([]int{80, 443, 9000}).Draw(t, "port"), sni: pick("", "web.shop", "api.shop"),
	}
	if c.tcp {
		return c
	}
	c.host, c.method = pick("web.shop", "Web.Shop", "web.shop:80", "api.shop"), pick("GET", "POST", "PUT")
	c.path, c.headers = pick("/a", "/a/b", "/a/b?c=/x", "/", "/a/", "/c/b"), map[string]string{}
	if rapid.Bool().Draw(t, "header") {
		c.headers["x"] = pick("1", "2", "23", "")
	}
	return c
}

// TestK01PropertyFiltersDecideAsThePoliciesSay: what Envoy does with the filters is what the
// reference of the kind says about the policies, for values that are malformed too.
func TestK01PropertyFiltersDecideAsThePoliciesSay(t *testing.T) {
	domains := []string{"td.example", "old.example"}
	var admitted, refused int
	rapid.Check(t, func(t *rapid.T) {
		p := &Policies{all: drawPolicies(t), domains: domains}
		for range 20 {
			c := drawCall(t)
			want := admits(p.all, domains, c)
			if got := passes(p.engines(c.tcp), c); got != want {
				t.Fatalf("%+v passes: %t, want %t\nunder %v", c, got, want, specs(p.all))
			}
			unverified, anonymous := &Policies{all: p.all, domains: domains, unverified: true}, c
			anonymous.peer = ""
			if got, want := passes(unverified.engines(c.tcp), c), admits(p.all, domains, anonymous); got != want {
				t.Fatalf("with a certificate that is not verified, %+v passes: %t, want %t\nunder %v", c, got, want, specs(p.all))
			}
			if want {
				admitted++
			} else {
				refused++
			}
		}
	})
	if admitted < refused/20 || refused < admitted/20 {
		t.Errorf("%d calls pass and %d do not: the property says little", admitted, refused)
	}
}

// TestK01PropertyMalformedValuesOpenNothing: a policy in which a value is replaced by one that
// cannot be compiled lets no call pass that did not pass without the rule, or with the rule for
// everything.
func TestK01PropertyMalformedValuesOpenNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := drawRule(t)
		rule.From = append(rule.From[:min(1, len(rule.From))],
			&security.Rule_From{Source: &security.Source{IpBlocks: []string{"10.1.0.0/16", "malformed"}}})
		c := drawCall(t)
		at := &federation.Object{Key: federation.ObjectKey{Namespace: "web", Name: "p"}}
		allowing := &Policies{all: []policy{{at, &security.AuthorizationPolicy{Action: allow, Rules: []*security.Rule{rule}}}}}
		if passes(allowing.engines(c.tcp), c) {
			t.Fatalf("an ALLOW rule with a malformed value lets %+v pass", c)
		}
		rule = &security.Rule{From: rule.From[len(rule.From)-1:]}
		denying := &Policies{all: []policy{{at, &security.AuthorizationPolicy{Action: deny, Rules: []*security.Rule{rule}}}}}
		if passes(denying.engines(c.tcp), c) {
			t.Fatalf("a DENY rule with a malformed value lets %+v pass", c)
		}
	})
}

// TestK68ATrustDomainOfTheMeshMeansAllOfThem: callers that still have a certificate of the former trust domain are
// those of the mesh. Other values mean themselves.
func TestK68ATrustDomainOfTheMeshMeansAllOfThem(t *testing.T) {
	for value, want := range map[string]string{
		"td.example": "td.example old.example", "old.example": "td.example old.example", "old*": "old.example", "other.example": "other.example",
		"*": "td.example old.example other.example",
	} {
		policies := []policy{{object: &federation.Object{}, spec: &security.AuthorizationPolicy{
			Rules: []*security.Rule{{From: []*security.Rule_From{{Source: &security.Source{TrustDomains: []string{value}}}}}},
		}}}
		p := &Policies{all: policies, domains: []string{"td.example", "old.example"}}
		var allowed []string
		for _, domain := range []string{"td.example", "old.example", "other.example"} {
			if passes(p.engines(false), call{peer: domain + "/ns/shop/sa/web"}) {
				allowed = append(allowed, domain)
			}
		}
		if got := strings.Join(allowed, " "); got != want {
			t.Errorf("%s allows callers of %q, want %q", value, got, want)
		}
	}
}
