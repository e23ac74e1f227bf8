package gatewayapi

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/re2"
)

type object = map[string]any

// httpTranslation translates the rules of one route for one listener.
type httpTranslation struct {
	reader *federation.Reader
	route  *routeView
	status *Status
	faults *faults
}

// item is one match of a rule, with what is done to requests.
type item struct {
	rank   rank
	route  *routeView
	order  [3]int // rule, match, part
	fields object // of the VirtualService's route
}

// rank is what decides which match comes first.
type rank struct {
	class            int // of the path
	length           int // of the path
	method           bool
	headers, queries int
}

// Classes of paths, the first of which comes first.
const (
	exactPath = iota
	regexPath
	prefixPath
)

func (a item) compare(b item) int {
	return cmp.Or(
		cmp.Compare(a.rank.class, b.rank.class), cmp.Compare(b.rank.length, a.rank.length), -compareBool(a.rank.method, b.rank.method),
		cmp.Compare(b.rank.headers, a.rank.headers), cmp.Compare(b.rank.queries, a.rank.queries),
		a.route.Created.Compare(b.route.Created), cmp.Compare(a.route.Key.Namespace+"/"+a.route.Key.Name, b.route.Key.Namespace+"/"+b.route.Key.Name),
		slices.Compare(a.order[:], b.order[:]),
	)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// rules translates all rules. Without a listener, only what is wrong is of interest.
func (t *httpTranslation) rules(rules []gateway.HTTPRouteRule, at *listener) (all []item) {
	for i := range rules {
		field := itemField("spec.rules", i)
		act := t.act(&rules[i], field, at)
		matches := rules[i].Matches
		if len(matches) == 0 {
			matches = []gateway.HTTPRouteMatch{{}}
		}
		for j, match := range matches {
			m, ok := t.match(match, itemField(field+".matches", j))
			if !ok {
				continue
			}
			for part, p := range m.parts(act.byPath) {
				fields := act.fields(p)
				fields["match"] = p.matches
				all = append(all, item{m.rank, t.route, [3]int{i, j, part}, fields})
			}
		}
	}
	return all
}

// matched is a match of requests.
type matched struct {
	rank   rank
	regex  bool
	value  string // of the path, without a slash at the end of a prefix
	fields object // of each match of the VirtualService
}

// part is one or two matches for the same action.
type part struct {
	matches []any
	prefix  string // that the match replaces; "" for a whole path
}

// parts are the matches of the path: a prefix of whole elements is /a and /a/. They are
// apart where the action depends on what is matched.
func (m matched) parts(apart bool) []part {
	uri := func(how, value string) object {
		fields := object{"uri": object{how: value}}
		for name, f := range m.fields {
			fields[name] = f
		}
		return fields
	}
	switch {
	case m.rank.class == exactPath:
		return []part{{matches: []any{uri("exact", m.value)}}}
	case m.regex:
		return []part{{matches: []any{uri("regex", m.value)}}}
	case m.value == "":
		return []part{{[]any{uri("prefix", "/")}, "/"}}
	case apart:
		return []part{{matches: []any{uri("exact", m.value)}}, {[]any{uri("prefix", m.value+"/")}, m.value + "/"}}
	}
	return []part{{matches: []any{uri("exact", m.value), uri("prefix", m.value+"/")}}}
}

// match reads a match. One that cannot be expressed matches nothing, and is reported.
func (t *httpTranslation) match(in gateway.HTTPRouteMatch, field string) (m matched, ok bool) {
	ok = true
	refuse := func(field, format string, args ...any) {
		t.status.unsupported(field, format+"; the match has no effect", args...)
		ok = false
	}
	m.fields = object{}
	t.matchPath(&m, in.Path, field+".path", refuse)
	if in.Method != nil {
		m.rank.method = true
		m.fields["method"] = object{"exact": string(*in.Method)}
	}
	headers := object{}
	for i, h := range in.Headers {
		name, at := strings.ToLower(string(h.Name)), itemField(field+".headers", i)
		if headers[name] != nil {
			continue // the first of a name counts
		}
		if slices.Contains(reservedHeaders, name) {
			refuse(at+".name", "a header of the name %s cannot be matched", name)
			continue
		}
		headers[name] = stringMatch(h.Type != nil && *h.Type == gateway.HeaderMatchRegularExpression, h.Value, at+".value", refuse)
	}
	queries := object{}
	for i, q := range in.QueryParams {
		at := itemField(field+".queryParams", i)
		if queries[string(q.Name)] == nil {
			queries[string(q.Name)] = stringMatch(q.Type != nil && *q.Type == gateway.QueryParamMatchRegularExpression, q.Value, at+".value", refuse)
		}
	}
	if m.rank.headers = len(headers); m.rank.headers > 0 {
		m.fields["headers"] = headers
	}
	if m.rank.queries = len(queries); m.rank.queries > 0 {
		m.fields["queryParams"] = queries
	}
	return m, ok
}

// reservedHeaders are names that a VirtualService does not mean as headers.
var reservedHeaders = []string{"uri", "scheme", "method", "authority"}

func (t *httpTranslation) matchPath(m *matched, in *gateway.HTTPPathMatch, field string, refuse func(field, format string, args ...any)) {
	kind, value := gateway.PathMatchPathPrefix, "/"
	if in != nil && in.Type != nil {
		kind = *in.Type
	}
	if in != nil && in.Value != nil {
		value = *in.Value
	}
	m.value, m.rank.length = value, len(value)
	switch kind {
	case gateway.PathMatchExact:
		m.rank.class = exactPath
	case gateway.PathMatchRegularExpression:
		m.rank.class, m.regex = regexPath, true
		if t.route.isGRPC() {
			m.rank.class, m.rank.length = prefixPath, 1 // after the matches of a service
		}
		if err := re2.Check(value); err != nil {
			refuse(field+".value", "%v", err)
		}
	case gateway.PathMatchPathPrefix:
		m.rank.class = prefixPath
		m.value = strings.TrimRight(value, "/")
		m.rank.length = len(m.value)
	default:
		refuse(field+".type", "the type %s is not supported", federation.Quote(string(kind)))
	}
}

func stringMatch(regex bool, value, field string, refuse func(field, format string, args ...any)) object {
	if !regex {
		return object{"exact": value}
	}
	if err := re2.Check(value); err != nil {
		refuse(field, "%v", err)
	}
	return object{"regex": value}
}

// action is what a rule does to requests.
type action struct {
	base    object
	byPath  bool // it depends on the matched path
	path    *gateway.HTTPPathModifier
	to      object // redirect or rewrite, which path is for
	field   string // redirect or rewrite
	refused bool
}

// fields are those of the VirtualService's route for the part.
func (a *action) fields(p part) object {
	all := object{}
	for name, value := range a.base {
		all[name] = value
	}
	if a.to == nil {
		return all
	}
	to := object{}
	for name, value := range a.to {
		to[name] = value
	}
	if a.path != nil {
		setPath(to, a.field, a.path, p)
	}
	all[a.field] = to
	return all
}

// setPath replaces the path or its matched prefix.
func setPath(to object, field string, path *gateway.HTTPPathModifier, p part) {
	if path.Type == gateway.FullPathHTTPPathModifier {
		full := *path.ReplaceFullPath
		if field == "redirect" {
			to["uri"] = cmp.Or(full, "/")
			return
		}
		to["uriRegexRewrite"] = object{"match": "/.*", "rewrite": strings.ReplaceAll(cmp.Or(full, "/"), `\`, `\\`)}
		return
	}
	prefix := strings.TrimRight(*path.ReplacePrefixMatch, "/")
	if p.prefix == "" {
		prefix = cmp.Or(prefix, "/")
	} else {
		prefix += "/"
	}
	if field == "redirect" {
		prefix = "%PREFIX()%" + prefix
	}
	to["uri"] = prefix
}

// refusal answers requests as the Gateway API wants for rules that cannot be used: with 500,
// or with 503, which is UNAVAILABLE for gRPC.
func (t *httpTranslation) refusal(reason string) object {
	status := http.StatusInternalServerError
	if t.route.isGRPC() {
		status = http.StatusServiceUnavailable
	}
	return object{"directResponse": object{"status": status, "body": object{"string": reason}}}
}

// act reads what a rule does.
func (t *httpTranslation) act(rule *gateway.HTTPRouteRule, field string, at *listener) *action {
	a := &action{base: object{}}
	for i, f := range rule.Filters {
		t.filter(a, f, itemField(field+".filters", i), at)
	}
	if rule.SessionPersistence != nil {
		t.status.unsupported(field+".sessionPersistence", "session persistence is not supported; use consistentHash of a DestinationRule")
	}
	t.onlyBackend(a, rule, field+".backendRefs", at)
	t.timeouts(a, rule, field)
	if a.field != "redirect" {
		t.forward(a, rule, field+".backendRefs")
	}
	if a.refused {
		return &action{base: t.refusal("UNSUPPORTED_FILTER")}
	}
	return a
}

// forward sends requests to the backends. The share of those that cannot be used gets 500.
func (t *httpTranslation) forward(a *action, rule *gateway.HTTPRouteRule, field string) {
	var to []any
	var good, bad int64
	for i, ref := range rule.BackendRefs {
		at := itemField(field, i)
		b := t.route.resolve(t.reader, ref.BackendObjectReference, at, t.faults)
		headers, ok := t.backendHeaders(ref.Filters, at, len(rule.BackendRefs) == 1)
		weight := weightOf(ref.Weight)
		if b.host == "" || !ok {
			bad += weight
			continue
		}
		if good += weight; weight == 0 {
			continue
		}
		d := object{"destination": b.destination(), "weight": weight}
		if len(headers) > 0 {
			d["headers"] = headers
		}
		to = append(to, d)
	}
	if good == 0 {
		for name := range a.base {
			delete(a.base, name)
		}
		a.to = nil
		a.base["directResponse"] = t.refusal("NO_BACKEND")["directResponse"]
		return
	}
	if bad > 0 {
		abort := object{"httpStatus": http.StatusInternalServerError, "percentage": percentage(float64(bad), float64(good+bad))}
		if t.route.isGRPC() {
			delete(abort, "httpStatus")
			abort["grpcStatus"] = "UNAVAILABLE"
		}
		a.base["fault"] = object{"abort": abort}
	}
	a.base["route"] = to
}

// filter adds a filter of the rule.
func (t *httpTranslation) filter(a *action, f gateway.HTTPRouteFilter, field string, at *listener) {
	headers, _ := a.base["headers"].(object)
	if headers == nil {
		headers = object{}
	}
	switch {
	case f.Type == gateway.HTTPRouteFilterRequestHeaderModifier && f.RequestHeaderModifier != nil:
		t.modify(headers, "request", f.RequestHeaderModifier, field+".requestHeaderModifier")
		a.base["headers"] = headers
	case f.Type == gateway.HTTPRouteFilterResponseHeaderModifier && f.ResponseHeaderModifier != nil:
		t.modify(headers, "response", f.ResponseHeaderModifier, field+".responseHeaderModifier")
		a.base["headers"] = headers
	case f.Type == gateway.HTTPRouteFilterRequestRedirect && f.RequestRedirect != nil:
		t.redirect(a, f.RequestRedirect, field+".requestRedirect", at)
	case f.Type == gateway.HTTPRouteFilterURLRewrite && f.URLRewrite != nil:
		a.field, a.to = "rewrite", object{}
		if f.URLRewrite.Hostname != nil {
			a.to["authority"] = string(*f.URLRewrite.Hostname)
		}
		t.replacePath(a, f.URLRewrite.Path, field+".urlRewrite.path")
	case f.Type == gateway.HTTPRouteFilterRequestMirror && f.RequestMirror != nil:
		t.mirror(a, f.RequestMirror, field+".requestMirror")
	case f.Type == gateway.HTTPRouteFilterCORS && f.CORS != nil:
		t.cors(a, f.CORS, field+".cors")
	default:
		t.status.unsupported(field, "the filter %s is not supported; requests of the rule get 500", f.Type)
		a.refused = true
	}
}

// replacePath has the action replace the path.
func (t *httpTranslation) replacePath(a *action, path *gateway.HTTPPathModifier, field string) {
	switch {
	case path == nil:
		return
	case path.Type == gateway.FullPathHTTPPathModifier && path.ReplaceFullPath != nil && isPath(*path.ReplaceFullPath):
	case path.Type == gateway.PrefixMatchHTTPPathModifier && path.ReplacePrefixMatch != nil && isPath(*path.ReplacePrefixMatch):
		a.byPath = true
	default:
		t.status.unsupported(field, "the path cannot be used; requests of the rule get 500")
		a.refused = true
		return
	}
	a.path = path
}

// isPath reports whether a path can be in a request.
func isPath(value string) bool { return (value == "" || value[0] == '/') && isText(value) }

// isText reports whether a value can be in a header.
func isText(value string) bool {
	return !strings.ContainsFunc(value, func(letter rune) bool { return letter < ' ' && letter != '\t' || letter == 0x7f })
}

func (t *httpTranslation) redirect(a *action, in *gateway.HTTPRequestRedirectFilter, field string, at *listener) {
	a.field, a.to = "redirect", object{}
	if in.StatusCode != nil {
		a.to["redirectCode"] = *in.StatusCode
	} else {
		a.to["redirectCode"] = http.StatusFound
	}
	if in.Scheme != nil {
		a.to["scheme"] = *in.Scheme
	}
	if in.Hostname != nil {
		a.to["authority"] = string(*in.Hostname)
	}
	switch {
	case in.Port != nil:
		a.to["port"] = *in.Port
	case at != nil && in.Scheme == nil && at.Port != wellKnown[at.Protocol]:
		a.to["port"] = at.Port
	}
	t.replacePath(a, in.Path, field+".path")
}

// wellKnown are the ports that are left out of a URL.
var wellKnown = map[gateway.ProtocolType]gateway.PortNumber{gateway.HTTPProtocolType: 80, gateway.HTTPSProtocolType: 443}

func (t *httpTranslation) mirror(a *action, in *gateway.HTTPRequestMirrorFilter, field string) {
	b := t.route.resolve(t.reader, in.BackendRef, field+".backendRef", t.faults)
	if b.host == "" {
		return
	}
	part, of := 100.0, 100.0
	switch {
	case in.Percent != nil:
		part = float64(*in.Percent)
	case in.Fraction != nil:
		part = float64(in.Fraction.Numerator)
		if in.Fraction.Denominator != nil {
			of = float64(max(*in.Fraction.Denominator, 1))
		}
	}
	mirrors, _ := a.base["mirrors"].([]any)
	a.base["mirrors"] = append(mirrors, object{"destination": b.destination(), "percentage": percentage(part, of)})
}

// percentage is a share of requests, which is not less than Envoy can tell from none.
func percentage(part, of float64) object {
	if part == 0 {
		return object{"value": 0}
	}
	return object{"value": max(100*part/of, 0.0001)}
}

// headerName is what Envoy accepts as the name of a header.
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// modify adds a change of headers.
func (t *httpTranslation) modify(headers object, side string, in *gateway.HTTPHeaderFilter, field string) {
	operations, _ := headers[side].(object)
	if operations == nil {
		operations = object{}
	}
	values := func(how string, list []gateway.HTTPHeader) {
		set, _ := operations[how].(object)
		if set == nil {
			set = object{}
		}
		for i, h := range list {
			name, at := strings.ToLower(string(h.Name)), itemField(field+"."+how, i)
			if !headerName.MatchString(name) || !isText(h.Value) {
				t.status.unsupported(at, "the header cannot be sent and is left as it is")
				continue
			}
			if _, given := set[name]; !given {
				set[name] = strings.ReplaceAll(h.Value, "%", "%%") // it is no command of Envoy
			}
		}
		if len(set) > 0 {
			operations[how] = set
		}
	}
	values("set", in.Set)
	values("add", in.Add)
	removed, _ := operations["remove"].([]string)
	for i, name := range in.Remove {
		if !headerName.MatchString(name) || strings.EqualFold(name, "host") {
			t.status.unsupported(itemField(field+".remove", i), "the header %s cannot be removed", federation.Quote(name))
			continue
		}
		removed = append(removed, strings.ToLower(name))
	}
	if len(removed) > 0 {
		operations["remove"] = removed
	}
	if len(operations) > 0 {
		headers[side] = operations
	}
}

// timeouts sets those of the rule, and its retries.
func (t *httpTranslation) timeouts(a *action, rule *gateway.HTTPRouteRule, field string) {
	if rule.Timeouts != nil {
		if d, ok := t.duration(rule.Timeouts.Request, field+".timeouts.request"); ok {
			a.base["timeout"] = d
		}
	}
	var retries object
	if rule.Timeouts != nil {
		if d, ok := t.duration(rule.Timeouts.BackendRequest, field+".timeouts.backendRequest"); ok && d != "0s" {
			retries = object{"attempts": 2, "perTryTimeout": d}
		}
	}
	if retry := rule.Retry; retry != nil {
		if retries == nil {
			retries = object{"attempts": 2}
		}
		if retry.Attempts != nil {
			retries["attempts"] = *retry.Attempts
		}
		if d, ok := t.duration(retry.Backoff, field+".retry.backoff"); ok && d != "0s" {
			retries["backoff"] = d
		}
		on := []string{"connect-failure", "refused-stream", "reset-before-request"}
		for _, code := range retry.Codes {
			on = append(on, strconv.Itoa(int(code)))
		}
		retries["retryOn"] = strings.Join(on, ",")
	}
	if retries != nil {
		a.base["retries"] = retries
	}
}

// duration is a duration as VirtualServices have it.
func (t *httpTranslation) duration(in *gateway.Duration, field string) (string, bool) {
	if in == nil {
		return "", false
	}
	d, err := time.ParseDuration(string(*in))
	if err != nil || d < 0 {
		t.status.unsupported(field, "%s is not a duration", federation.Quote(string(*in)))
		return "", false
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s", true
}
