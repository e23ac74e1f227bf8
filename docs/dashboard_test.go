package docs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

// ruleTest is a file for "promtool test rules": what queries and rules give for series.
type ruleTest struct {
	RuleFiles          []string      `json:"rule_files"`
	EvaluationInterval string        `json:"evaluation_interval"`
	Tests              []seriesTests `json:"tests"`
}

type seriesTests struct {
	Interval    string      `json:"interval"`
	InputSeries []series    `json:"input_series"`
	Queries     []queryTest `json:"promql_expr_test"`
}

type series struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

type queryTest struct {
	Expr       string   `json:"expr"`
	EvalTime   string   `json:"eval_time"`
	ExpSamples []sample `json:"exp_samples"`
}

type sample struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

// hasData asks that a query gives at least one value.
func hasData(query string) queryTest {
	return queryTest{Expr: "count(" + query + ") > bool 0", EvalTime: "5m", ExpSamples: []sample{{Labels: "{}", Value: 1}}}
}

// TestU35AlertsAreRules of Prometheus, about metrics that the hub has.
func TestU35AlertsAreRules(t *testing.T) {
	page := read(t, "metrics.md")
	alerts := blocksOf(section(t, page, "## Alerts"), "yaml")[0]
	checkRules(t, alerts)
	known := firstColumn(rows(t, page, "name"))
	for _, name := range metricsOfRules.FindAllString(alerts, -1) {
		if !slices.Contains(known, suffixesOfHistograms.ReplaceAllString(name, "")) {
			t.Errorf("an alert is about %s, which the page does not have", name)
		}
	}
}

// TestU35IstiosDashboardShowsData: with the rules, every metric of istiod that the page has
// comes from the metrics of a hub, and so does what Istio's own dashboard asks for.
func TestU35IstiosDashboardShowsData(t *testing.T) {
	rules := read(t, "../deploy/prometheus/istio-rules.yaml")
	checkRules(t, rules)
	test := seriesTests{Interval: "1m", InputSeries: scrape(t, startHub(t))}
	for _, rule := range recordingRules(t) {
		test.Queries = append(test.Queries, hasData(rule.Record))
	}
	lacking := lackingMetrics(t)
	for _, query := range dashboardQueries(t) {
		if !lacking.MatchString(query) {
			test.Queries = append(test.Queries, hasData(query))
		}
	}
	checkQueries(t, []byte(rules), test)
}

// checkQueries has promtool evaluate queries of recorded series, with rules if there are any.
func checkQueries(t *testing.T, rules []byte, test seriesTests) {
	t.Helper()
	dir := t.TempDir()
	whole := ruleTest{EvaluationInterval: "1m", Tests: []seriesTests{test}}
	if rules != nil {
		writeFile(t, filepath.Join(dir, "rules.yaml"), rules)
		whole.RuleFiles = []string{"rules.yaml"}
	}
	file, err := yaml.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "test.yaml"), file)
	if text, err := testbed.Promtool(t, dir, "test", "rules", "test.yaml"); err != nil {
		t.Errorf("promtool: %v\n%s", err, text)
	}
}

func checkRules(t *testing.T, rules string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := testbed.Promtool(t, dir, "check", "rules", "rules.yaml"); err != nil {
		t.Errorf("promtool: %v\n%s", err, text)
	}
}

// scrape returns the metrics of a hub as series that grow for ten minutes, with the label of
// the target that the page asks for.
func scrape(t *testing.T, h *hub) []series {
	t.Helper()
	answer, err := h.health.Get("http://localhost/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var all []series
	for line := range strings.Lines(string(page)) {
		value := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || value < 0 {
			continue
		}
		name, labels, _ := strings.Cut(line[:value], "{")
		labels = strings.TrimSuffix(labels, "}")
		all = append(all, series{Series: fmt.Sprintf(`%s{app="istiod",%s}`, name, labels), Values: strings.TrimSpace(line[value:]) + "+1x10"})
	}
	return all
}

// dashboardQueries are what the panels of Istio's dashboard ask of istiod: metrics of
// containers and of proxies come from elsewhere.
func dashboardQueries(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, query := range queriesOf(t, testbed.IstioDashboard(t, toolset.ControlPlaneDashboard)) {
		if !strings.Contains(query, "container_") && !strings.Contains(query, "envoy_") {
			all = append(all, strings.ReplaceAll(query, "$__rate_interval", "5m"))
		}
	}
	if len(all) < 10 {
		t.Fatalf("the dashboard has %d queries about istiod", len(all))
	}
	return all
}

// lackingMetrics matches the metrics of istiod that cannot be had from the hub. An ellipsis
// represents the end of a name.
func lackingMetrics(t *testing.T) *regexp.Regexp {
	t.Helper()
	var names []string
	for _, name := range firstColumn(rows(t, read(t, "metrics.md"), "metric of istiod")) {
		names = append(names, strings.ReplaceAll(regexp.QuoteMeta(name), "…", ""))
	}
	return regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)`)
}
