package graphiql

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// fetching is what stands before the two slashes of an address that a browser
// would fetch from another host while it loads the page. Addresses in messages,
// licences and XML names are not fetched.
var fetching = regexp.MustCompile(`(?i)(url\(\s*["']?|@import\s+["']?|\bfrom\s*["']|\bimport\(?\s*["']|` +
	`importScripts\(\s*["']|new (Shared)?Worker\(\s*["']|\bfetch\(\s*["']|\bsrc=["']?)(https?:)?$`)

// foreign returns an address that text would make a browser fetch, or "".
func foreign(text string) string {
	for from := 0; ; {
		found := strings.Index(text[from:], "//")
		if found < 0 {
			return ""
		}
		slashes := from + found
		if fetching.MatchString(text[max(0, slashes-40):slashes]) {
			return text[max(0, slashes-40):min(len(text), slashes+40)]
		}
		from = slashes + len("//")
	}
}

func TestCommittedBundleMatchesItsChecksums(t *testing.T) {
	sums, err := dist.ReadFile("dist/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	assets, listed := bundled(), 0
	for line := range strings.Lines(string(sums)) {
		var want, name string
		if _, err := fmt.Sscan(line, &want, &name); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		found, ok := assets[name]
		if !ok {
			t.Errorf("%s is listed and not there", name)
			continue
		}
		listed++
		if sum := sha256.Sum256(unpack(found.body)); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s is not what was built; build it again in bundle/", name)
		}
	}
	if listed != len(assets) {
		t.Errorf("%d assets are listed and %d are there", listed, len(assets))
	}
}

func TestBundleFetchesNothingFromElsewhere(t *testing.T) {
	for name, found := range bundled() {
		if strings.HasSuffix(name, ".txt") {
			continue
		}
		body := string(unpack(found.body))
		if hit := foreign(body); hit != "" {
			t.Errorf("%s would fetch %q", name, hit)
		}
		if strings.Contains(body, "sourceMappingURL=") {
			t.Errorf("%s names a source map", name)
		}
	}
}

func TestForeignAddressesAreFound(t *testing.T) {
	for _, text := range []string{
		`@import "https://cdn.example/a.css"`, `url(//cdn.example/a.woff2)`, `import("https://cdn.example/a.js")`,
		`import x from"https://cdn.example/a.js"`, `new Worker("https://cdn.example/w.js")`, `fetch("http://x.example")`,
	} {
		if foreign(text) == "" {
			t.Errorf("%s is not found", text)
		}
	}
	for _, text := range []string{`"http://www.w3.org/2000/svg"`, `// a comment`, `see https://example.com`} {
		if hit := foreign(text); hit != "" {
			t.Errorf("%s is found in %s", hit, text)
		}
	}
}
