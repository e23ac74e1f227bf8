package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/xds/envoy"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// noEffect is how a page says that its kind is stored and nothing more.
const noEffect = "none of its fields has an effect"

// pageOf is the page of a kind; two groups have a Gateway.
func pageOf(kind federation.Kind) string {
	if kind == (federation.Kind{Group: "gateway.networking.k8s.io", Name: "Gateway"}) {
		return "gatewayapi-gateway"
	}
	return strings.ToLower(kind.Name)
}

// schemas are those of all kinds that a hub stores.
func schemas(t *testing.T) *schema.Set {
	t.Helper()
	set, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestEveryKindHasAPage: each kind that can be stored has a page, listed in the
// index, whose examples are valid; and what the page says about the kind as a whole
// is what the status of its objects says.
func TestEveryKindHasAPage(t *testing.T) {
	set := schemas(t)
	index := read(t, "kinds/README.md")
	for _, kind := range set.Kinds() {
		page := pageOf(kind.Kind)
		if !strings.Contains(index, "("+page+".md)") {
			t.Errorf("the index lacks %s", kind.Kind)
		}
		text, err := os.ReadFile("kinds/" + page + ".md")
		if err != nil {
			t.Errorf("%s has no page: %v", kind.Kind, err)
			continue
		}
		examples := 0
		for _, block := range blocksOf(string(text), "yaml") {
			for document := range strings.SplitSeq(block, "---\n") {
				if value := manifestOf(t, document); value["kind"] == kind.Name {
					examples++
					checkExample(t, set, value, strings.Contains(string(text), noEffect))
				}
			}
		}
		if examples == 0 {
			t.Errorf("the page of %s has no example of it", kind.Kind)
		}
	}
}

// TestU80ExamplesAreAccepted has a hub judge each manifest of all pages that is for a hub, as apply --dry-run does.
func TestU80ExamplesAreAccepted(t *testing.T) {
	set := schemas(t)
	known := map[federation.Kind]bool{}
	for _, kind := range set.Kinds() {
		known[kind.Kind] = true
	}
	pages, err := filepath.Glob("kinds/*.md")
	if err != nil {
		t.Fatal(err)
	}
	h, judged := startHub(t), 0
	for _, page := range append(guide(t), pages...) {
		for _, block := range blocksOf(read(t, page), "yaml") {
			if !forHub(t, block, known) {
				continue
			}
			judged++
			text, err := json.Marshal(block)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := h.post(fmt.Sprintf("mutation { apply(input: {dryRun: true, manifests: [%s]}) { userErrors { code message } } }", text))
			if err != nil || !strings.Contains(string(answer), `"userErrors":[]`) {
				t.Errorf("%s: %v %s for\n%s", page, err, answer, block)
			}
		}
	}
	if judged < 60 {
		t.Errorf("only %d examples were seen", judged)
	}
}

var endOfDocument = regexp.MustCompile(`(?m)^---.*\n`)

// forHub reports whether a block has objects of kinds that hubs store, and not settings or objects of clusters.
func forHub(t *testing.T, block string, known map[federation.Kind]bool) bool {
	t.Helper()
	if !regexp.MustCompile(`(?m)^apiVersion:`).MatchString(block) {
		return false
	}
	for _, document := range endOfDocument.Split(block, -1) {
		value := manifestOf(t, document)
		version, _ := value["apiVersion"].(string)
		group, _, _ := strings.Cut(version, "/")
		name, _ := value["kind"].(string)
		if known[federation.Kind{Group: group, Name: name}] {
			return true
		}
	}
	return false
}

func manifestOf(t *testing.T, document string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(document))
	var value map[string]any
	if err == nil {
		err = json.Unmarshal(data, &value)
	}
	if err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	return value
}

func checkExample(t *testing.T, set *schema.Set, value map[string]any, unused bool) {
	t.Helper()
	admitted, problems := set.Admit(value, nil)
	if len(problems) > 0 {
		t.Errorf("an example of %s is refused: %v", value["kind"], problems)
		return
	}
	apiVersion, _ := admitted["apiVersion"].(string)
	name, _ := admitted["kind"].(string)
	group, _, _ := strings.Cut(apiVersion, "/")
	metadata, _ := admitted["metadata"].(map[string]any)
	objectName, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	key := federation.ObjectKey{Group: group, Kind: name, Namespace: namespace, Name: objectName}
	text, err := json.Marshal(admitted)
	if err != nil {
		t.Fatal(err)
	}
	_, edit := config.NewState(config.Options{Hub: "hub"}).Next([]config.Event{{New: &config.Object{
		Key:        key,
		APIVersion: apiVersion, Manifest: text,
	}}}, 1)
	said := len(envoy.NotHonoured(edit.Objects.Set[key])) > 0
	for _, p := range edit.Problems.Set {
		said = said || p.Code == "NOT_HONOURED"
	}
	if said != unused {
		t.Errorf("the page of %s says that it has no effect: %t; its status says so: %t", name, unused, said)
	}
}

// TestR47IndexSaysWhichKindsHaveNoEffect: the index lists a kind among those
// without effect exactly if the kind's page says so.
func TestR47IndexSaysWhichKindsHaveNoEffect(t *testing.T) {
	set := schemas(t)
	_, rest, found := strings.Cut(read(t, "kinds/README.md"), "and have no effect:")
	idle, _, ends := strings.Cut(rest, "\n\n")
	if !found || !ends {
		t.Fatal("the index does not say which kinds have no effect")
	}
	for _, kind := range set.Kinds() {
		page := pageOf(kind.Kind)
		onPage := strings.Contains(read(t, "kinds/"+page+".md"), noEffect)
		if inIndex := strings.Contains(idle, "("+page+".md)"); inIndex != onPage {
			t.Errorf("%s: the index says that it has no effect: %t; its page says so: %t", page, inIndex, onPage)
		}
	}
}
