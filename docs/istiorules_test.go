package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// recordingRule is a rule for Prometheus that makes a metric of istiod.
type recordingRule struct {
	Record string `json:"record"`
	Expr   string `json:"expr"`
}

func recordingRules(t *testing.T) []recordingRule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string          `json:"name"`
			Rules []recordingRule `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, "../deploy/prometheus/istio-rules.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	return file.Groups[0].Rules
}

var (
	metricsOfRules       = regexp.MustCompile(`isthmus_[a-z_]+`)
	suffixesOfHistograms = regexp.MustCompile(`_(bucket|sum|count)$`)
	labelsOfRules        = regexp.MustCompile(`[{]([a-z]+)(=~?)"([^"]*)"[}]`)
)

// TestU17IstioRulesUseMetricsOfTheHub: every rule is made of metrics, labels and values that
// are documented, and the page explains every rule.
func TestU17IstioRulesUseMetricsOfTheHub(t *testing.T) {
	page := read(t, "metrics.md")
	known := map[string][]string{}
	for _, row := range rows(t, page, "name") {
		known[strings.Trim(row[0], "`")] = strings.Split(strings.ReplaceAll(row[2], "`", ""), ", ")
	}
	var records []string
	for _, rule := range recordingRules(t) {
		records = append(records, rule.Record)
		for _, name := range metricsOfRules.FindAllString(rule.Expr, -1) {
			labels, is := known[suffixesOfHistograms.ReplaceAllString(name, "")]
			if !is {
				t.Errorf("%s: the hub has no metric %s", rule.Record, name)
			}
			for _, label := range labelsOfRules.FindAllStringSubmatch(rule.Expr, -1) {
				if !slices.Contains(labels, label[1]) {
					t.Errorf("%s: the metric %s has no label %s", rule.Record, name, label[1])
				}
				for _, value := range strings.Split(label[3], "|") {
					if !strings.Contains(page+read(t, "xds.md"), value) {
						t.Errorf("%s: no page has the value %q of %s", rule.Record, value, label[1])
					}
				}
			}
		}
		if strings.Count(rule.Expr, "(") != strings.Count(rule.Expr, ")") {
			t.Errorf("%s: the parentheses of %s do not match", rule.Record, rule.Expr)
		}
	}
	slices.Sort(records)
	sameSet(t, "metrics.md", firstColumn(rows(t, page, "istiod")), slices.Compact(records))
}
