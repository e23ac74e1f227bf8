// Package graphiql serves the GraphiQL editor from assets inside the binary, so
// that it works without any other network than the one to the hub.
package graphiql

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"
)

// contentSecurityPolicy lets the page talk to the hub alone. The editor sets
// style attributes and adds style elements; that is the one exception.
const contentSecurityPolicy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS []byte

type handler struct {
	page   asset
	assets map[string]asset
}

// Handler answers a path that ends with /graphiql with the editor, and paths
// below it with its assets. endpoint is where the editor sends operations,
// absolute or relative to the page; defaultQuery is what a new tab has. A first
// visitor finds a tab for each of the examples, unless the address of the page has
// a query (?query= and ?variables=), which is opened then.
func Handler(endpoint, defaultQuery string, examples ...string) http.Handler {
	if len(examples) == 0 {
		examples = []string{defaultQuery}
	}
	assets := bundled()
	assets["page.css"] = plain("page.css", pageCSS)
	return &handler{page: plain("page.html", page(endpoint, defaultQuery, examples)), assets: assets}
}

func page(endpoint, defaultQuery string, examples []string) []byte {
	var out bytes.Buffer
	tabs, err := json.Marshal(examples)
	if err != nil {
		panic("writing the examples of GraphiQL: " + err.Error()) // Impossible: they are strings.
	}
	parsed := template.Must(template.New("page").Parse(pageHTML))
	err = parsed.Execute(&out, struct{ Endpoint, Query, Examples string }{endpoint, defaultQuery, string(tabs)})
	if err != nil {
		panic("rendering the embedded GraphiQL page: " + err.Error()) // Impossible: strings into a fixed template.
	}
	return out.Bytes()
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "GraphiQL is read with GET", http.StatusMethodNotAllowed)
		return
	}
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	switch found, ok := h.assets[name]; {
	case name == "graphiql":
		h.page.serve(w, r)
	case name == "":
		w.Header().Set("Location", "../graphiql")
		w.WriteHeader(http.StatusPermanentRedirect)
	case ok:
		found.serve(w, r)
	default:
		http.NotFound(w, r)
	}
}

func setSecurityHeaders(header http.Header) {
	header.Set("Content-Security-Policy", contentSecurityPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
}
