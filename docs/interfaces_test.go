package docs

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/graph/transport"
	"isthmus.dev/isthmus/xds"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// metric is a metric as it is registered, and as a row of the guide says it.
type metric struct{ kind, labels string }

func registered(t *testing.T) map[string]metric {
	t.Helper()
	found := map[string]metric{}
	for function, kind := range map[string]string{"counter": "counter", "gauge": "gauge", "latency": "histogram", "sizes": "histogram"} {
		calls(t, "../internal/metrics", function, func(args []ast.Expr) {
			var labels []string
			for _, l := range args[3:] {
				labels = append(labels, text(l))
			}
			found["isthmus_"+text(args[1])] = metric{kind, strings.Join(labels, ",")}
		})
	}
	return found
}

func TestEveryMetricIsDocumented(t *testing.T) {
	page, real := read(t, "metrics.md"), registered(t)
	documented := rows(t, page, "name")
	sameSet(t, "metrics", firstColumn(documented), keysOf(real))
	for _, row := range documented {
		name := spans(row[0])[0]
		if m := (metric{row[1], strings.Join(spans(row[2]), ",")}); m != real[name] {
			t.Errorf("%s is a %v, the guide says %v", name, real[name], m)
		}
	}
	for _, name := range regexp.MustCompile(`isthmus_[a-z_]+`).FindAllString(page, -1) {
		if _, ok := real[strings.TrimSuffix(name, "_bucket")]; !ok {
			t.Errorf("%s is used and does not exist", name)
		}
	}
}

// TestEveryLabelValueIsDocumented: the guide lists the fixed values of labels.
func TestEveryLabelValueIsDocumented(t *testing.T) {
	_, page := blocks(read(t, "metrics.md"))
	words := constants(t, "../xds", ofType("Event"))
	words = slices.DeleteFunc(words, func(w string) bool { // they have metrics of their own
		return slices.Contains([]string{"sent", "acked", "nacked", "built"}, w)
	})
	words = append(words, constants(t, "../registries/consul", func(name, _ string) bool { return strings.HasPrefix(name, "Count") })...)
	for _, w := range words {
		if !slices.Contains(spans(page), w) {
			t.Errorf("metrics.md does not say what %q is", w)
		}
	}
}

// TestTheNodeIsDocumented compares the metadata that is read with the table.
func TestTheNodeIsDocumented(t *testing.T) {
	real := map[string]bool{}
	for _, reads := range []string{"text", "longText", "port", "boolean", "flag", "labels", "addressTexts", "fields"} {
		calls(t, "../xds/envoy/node", reads, func(args []ast.Expr) {
			if len(args) == 1 && text(args[0]) != "" {
				real[text(args[0])] = true
			}
		})
	}
	page := read(t, "xds.md")
	sameSet(t, "metadata", firstColumn(rows(t, page, "key")), keysOf(real))
	sameSet(t, "types", firstColumn(rows(t, page, "type")), constants(t, "../xds/envoy/resource", ofType("Type")))
}

// limits reads a table of limits: what is limited and its value, the first word
// of the second cell.
func limits(t *testing.T, text, first string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, row := range rows(t, text, first) {
		found[row[0]] = strings.Fields(row[1])[0]
	}
	return found
}

// sameLimits compares every field of a struct with the row that names says.
func sameLimits(t *testing.T, real any, names, documented map[string]string) {
	t.Helper()
	v := reflect.ValueOf(real)
	for i := range v.NumField() {
		field, value := v.Type().Field(i).Name, fmt.Sprint(v.Field(i).Interface())
		row, known := names[field]
		if !known {
			continue
		}
		if documented[row] != value {
			t.Errorf("%s (%q) is %s, the guide says %q", field, row, value, documented[row])
		}
		delete(documented, row)
	}
	for row := range documented {
		t.Errorf("the guide has %q, which is no limit", row)
	}
}

func TestLimitsOfXDS(t *testing.T) {
	names := map[string]string{
		"Streams":      "open streams of one identity (`xds.maxStreamsPerIdentity`); with `--dev` there is no limit",
		"Variants":     "variants of its node, of all streams of one identity (`xds.maxVariantsPerIdentity`)",
		"UnknownNames": "bytes of memory for names without a resource, of all streams of one identity (`xds.maxUnknownNameBytesPerIdentity`)",
		"NodeBytes":    "bytes of memory for what nodes report about themselves, of all streams of one identity (`xds.maxNodeBytesPerIdentity`)",
		"Names":        "names subscribed to, of one type (`xds.maxNamesPerType`); also `initial_resource_versions`",
		"NameBytes":    "bytes of a name, or of the URL of a type",
		"Requests":     "requests a second, answers apart", "Burst": "requests at once",
		"FirstRequest": "until the first request", "Send": "until a response is taken",
	}
	if n := reflect.TypeFor[xds.Limits]().NumField(); n != len(names) {
		t.Errorf("there are %d limits, the test knows %d", n, len(names))
	}
	sameLimits(t, xds.DefaultLimits, names, limits(t, read(t, "xds.md"), "limit of a stream"))
}

func TestLimitsOfGraphQL(t *testing.T) {
	names := map[string]string{
		"Body": "bytes of a body", "QueryString": "bytes of a query string", "Tokens": "tokens of a document",
		"Name": "bytes of a name in a document", "Operations": "operations in a document",
		"Fragments": "fragments", "Depth": "levels of fields", "IntrospectionDepth": "levels of introspection", "Aliases": "aliases",
		"RootFields": "fields at the top", "Directives": "directives", "Fields": "fields of a document, fragments resolved",
		"Cost": "objects that an answer can hold", "PageDefault": "default size of a page", "PageMax": "size of a page",
		"Time": "time limit of a query, in seconds", "Change": "time limit of a mutation, in seconds", "InFlight": "operations at the same time",
		"InFlightPerCaller": "operations of one caller",
		"LargeBody":         "bytes of a mutation's body", "LargeBodies": "bodies larger than that of a query, at the same time",
		"Values": "JSON values in a body", "ListMax": "items of a list in an argument of a query", "Held": "bytes of requests and answers in memory",
		"HeldPerCaller": "bytes of requests and answers of one caller",
	}
	if n := reflect.TypeFor[transport.Limits]().NumField(); n != len(names)+1 { // Documents is the hub's own affair
		t.Errorf("there are %d limits, the test knows %d", n, len(names))
	}
	documented := limits(t, read(t, "graphql.md"), "limit")
	for _, name := range []string{"Time", "Change"} {
		limit, err := time.ParseDuration(documented[names[name]] + "s")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		documented[names[name]] = limit.String()
	}
	sameLimits(t, transport.DefaultLimits(), names, documented)
}

func TestLimitsOfStreams(t *testing.T) {
	names := map[string]string{
		"Streams": "WebSockets and event streams in total", "Connections": "WebSockets of a certificate",
		"ConnectionsPerAddress": "WebSockets of an address, without a certificate", "EventStreams": "event streams of a certificate or address",
		"Subscriptions": "operations of a WebSocket", "Events": "events of subscriptions that are executed at the same time",
		"Message": "bytes of a message", "Messages": "messages and pings a second, over ten seconds",
		"MessageTime": "seconds for a message to arrive", "InitTime": "seconds until `connection_init`",
		"KeepAlive": "seconds between pings, and for their answer",
		"Stall":     "seconds for an answer to be read", "Drain": "seconds for clients to disconnect when the hub shuts down",
	}
	if n := reflect.TypeFor[transport.StreamLimits]().NumField(); n != len(names) {
		t.Errorf("there are %d limits, the test knows %d", n, len(names))
	}
	documented := limits(t, read(t, "graphql.md"), "limit of a stream")
	for _, field := range []string{"MessageTime", "InitTime", "KeepAlive", "Stall", "Drain"} {
		documented[names[field]] += "s"
	}
	if documented[names["Events"]] == "one" { // for each CPU
		documented[names["Events"]] = strconv.Itoa(runtime.GOMAXPROCS(0))
	}
	sameLimits(t, transport.DefaultStreamLimits(), names, documented)
}

// TestWaitsOfXDS compares the table of waits with the default timing.
func TestWaitsOfXDS(t *testing.T) {
	names := map[string]string{
		"pace": "between two pushes of a type", "unanswered": "for the answer to the last push",
		"addition": "of a listener or route for its new cluster", "removal": "of a removed cluster for what refers to it",
		"proof":   "of a set without any service",
		"access":  "between two looks whether a stream may go on",
		"refusal": "until a stream of probes that is refused ends, so that Envoy asks again later",
	}
	documented, found := limits(t, read(t, "xds.md"), "wait"), 0
	walk(t, "../xds", func(n ast.Node) {
		made, ok := n.(*ast.CompositeLit)
		if !ok {
			return
		}
		if typ, ok := made.Type.(*ast.Ident); !ok || typ.Name != "timing" {
			return
		}
		for _, e := range made.Elts {
			pair := e.(*ast.KeyValueExpr)
			found++
			if field := pair.Key.(*ast.Ident).Name; documented[names[field]] != duration(pair.Value).String() {
				t.Errorf("%s is %s, the guide says %q", field, duration(pair.Value), documented[names[field]])
			}
		}
	})
	if found != len(documented) || found != len(names) {
		t.Errorf("the code has %d waits, the guide %d", found, len(documented))
	}
}

// duration reads 20 * time.Millisecond and time.Second.
func duration(e ast.Expr) time.Duration {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return duration(e.X) * duration(e.Y)
	case *ast.BasicLit:
		n, _ := strconv.Atoi(e.Value)
		return time.Duration(n)
	case *ast.SelectorExpr:
		return map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute}[e.Sel.Name]
	}
	return 0
}

// TestCaptureRulesAreTheTestedOnes: the rules of the guide are those with which
// the end-to-end tests lead traffic to a sidecar.
func TestCaptureRulesAreTheTestedOnes(t *testing.T) {
	var tested []string
	walk(t, "../deploy/testbed", func(n ast.Node) {
		list, ok := n.(*ast.CompositeLit)
		if !ok || len(list.Elts) == 0 || text(list.Elts[0]) != "*nat" {
			return
		}
		for _, e := range list.Elts {
			tested = append(tested, rule(e))
		}
	})
	documented := strings.Split(strings.TrimSpace(blocksOf(section(t, read(t, "xds.md"), "## Capture"), "text")[0]), "\n")
	if !slices.Equal(documented, tested) {
		t.Errorf("the guide has\n%s\nthe tests use\n%s", strings.Join(documented, "\n"), strings.Join(tested, "\n"))
	}
}

// rule joins literals; the one variable is the owner.
func rule(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return rule(e.X) + rule(e.Y)
		}
	case *ast.Ident:
		return "-m owner --uid-owner 1337"
	}
	return text(e)
}

// TestTypesOfXDSAreListed: pages that tell what a type may be called have all types.
func TestTypesOfXDSAreListed(t *testing.T) {
	for _, row := range resource.Types {
		for page, as := range map[string]string{
			"metrics.md": row.Service, "cli.md": row.Plural, "troubleshooting.md": row.Plural,
		} {
			if !strings.Contains(read(t, page), "`"+as+"`") {
				t.Errorf("%s does not have `%s`", page, as)
			}
		}
		if strings.Contains(row.Plural, " ") {
			t.Errorf("%q is a word of a command line", row.Plural)
		}
	}
}
