package gatewayapi

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/internal/re2"
)

type object = map[string]any

// httpTranslation translates the rules of one route for one listener.
type httpTranslation struct {
	reader *federation.Reader
	route  *routeView
	status *Status
	faults *faults
	sum    re2.Sum // of the route's regular expressions
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

// Classes of paths, the first of which comes first, as in Istio.
const (
	exactPath = iota
	prefixPath
	regexPath
)

func (a item) compare(b item) int {
	return cmp.Or(
		cmp.Compare(a.rank.class, b.rank.class), cmp.Compare(b.rank.length, a.rank.length), -compareBool(a.rank.method, b.rank.method),
		cmp.Compare(b.rank.headers, a.rank.headers), cmp.Compare(b.rank.queries, a.rank.queries),
		a.route.Created.Compare(b.route.Created), cmp.Compare(a.route.Key.Namespace+"/"+a.route.Key.Name,
			b.route.Key.Namespace+"/"+b.route.Key.Name),
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
	if t.route.grpc {
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
		t.status.unsupported(field+".sessionPersistence", kind.NoPersistence)
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
		good += weight
		if weight == 0 {
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
		if t.route.grpc {
			delete(abort, "httpStatus")
			abort["grpcStatus"] = "UNAVAILABLE"
		}
		a.base["fault"] = object{"abort": abort}
	}
	a.base["route"] = to
}

// timeouts sets those of the rule, and its retries.
func (t *httpTranslation) timeouts(a *action, rule *gateway.HTTPRouteRule, field string) {
	var each string // the timeout of each try
	if rule.Timeouts != nil {
		if d, ok := t.duration(rule.Timeouts.Request, field+".timeouts.request"); ok {
			a.base["timeout"] = d
		}
		if d, ok := t.duration(rule.Timeouts.BackendRequest, field+".timeouts.backendRequest"); ok && d != "0s" {
			each = d
		}
	}
	retries := object{}
	if rule.Retry != nil {
		retries = t.retries(rule.Retry, field+".retry")
	}
	if each != "" {
		retries["perTryTimeout"] = each
		if retries["attempts"] == nil {
			retries["attempts"] = defaultAttempts
		}
	}
	if len(retries) > 0 {
		a.base["retries"] = retries
	}
}

const defaultAttempts = 2 // as those of VirtualServices

// retries are those of a rule (GEP-1731, G104). Connections that fail, are reset or time out are tried again, as well as the codes.
func (t *httpTranslation) retries(in *gateway.HTTPRouteRetry, field string) object {
	attempts := defaultAttempts
	if in.Attempts != nil {
		attempts = min(*in.Attempts, math.MaxInt32) // the most of a VirtualService, which has rules of other routes, too
	}
	on := []string{"connect-failure", "refused-stream", "reset"}
	for _, code := range in.Codes {
		on = append(on, strconv.Itoa(int(code)))
	}
	all := object{"attempts": attempts, "retryOn": strings.Join(on, ",")}
	if d, ok := t.duration(in.Backoff, field+".backoff"); ok && d != "0s" {
		all["backoff"] = d
	}
	return all
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
