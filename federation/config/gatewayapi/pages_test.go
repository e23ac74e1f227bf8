package gatewayapi

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestU39ExamplesOfThePagesFit: who applies the examples of all pages of the Gateway API has routes that
// attach to the Gateway. Only services are missing.
func TestU39ExamplesOfThePagesFit(t *testing.T) {
	pages := "gatewayclass gatewayapi-gateway listenerset referencegrant httproute grpcroute tlsroute tcproute udproute backendtlspolicy"
	var examples []string
	for page := range strings.FieldsSeq(pages) {
		text, err := os.ReadFile("../../../docs/kinds/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(string(text))
		if found == nil {
			t.Fatalf("%s has no example", page)
		}
		examples = append(examples, strings.TrimSpace(found[1]))
	}
	w := newFixture(t)
	w.apply("", strings.Join(examples, "\n---\n"))
	objects, problems := Translate(w.aggregate.Latest())
	if len(objects) == 0 {
		t.Error("nothing comes of the examples")
	}
	for _, p := range problems {
		if p.Code != "BACKEND_NOT_FOUND" && p.Code != "TARGET_NOT_FOUND" {
			t.Errorf("%s %s: %s %s", p.Object, p.Field, p.Message, p.Code)
		}
	}
}
