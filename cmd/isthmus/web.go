package main

import (
	_ "embed" // the page
	"html/template"
	"io"
	"net/http"
	"strings"
	texttemplate "text/template"

	"isthmus.dev/isthmus/graph/graphiql"
)

// firstQuery is what a newcomer asks first.
const firstQuery = `{
  services {
    nodes {
      hostname
      clusterVIPs { clusterID addresses }
      endpoints { totalCount }
    }
  }
}
`

//go:embed page.html
var pageSource string

// pageFacts are what the page and the greeting say of this hub.
type pageFacts struct {
	Version, GraphQL, XDS, Health string
	Curl                          string
	Sample                        bool
}

func (s *settings) facts() pageFacts {
	f := pageFacts{Version: version, XDS: s.xdsAddr, Health: s.healthAddr, Sample: s.sample}
	f.Curl = "curl -s "
	scheme := "https://"
	if s.dev {
		scheme = "http://"
	}
	f.GraphQL = scheme + s.graphqlAddr
	if path, isUnix := strings.CutPrefix(s.graphqlAddr, "unix:"); isUnix {
		f.Curl += "--unix-socket " + path + " "
		f.GraphQL = scheme + "localhost"
	}
	f.Curl += f.GraphQL + `/graphql -H 'content-type: application/json' -d '{"query":"` + strings.Join(strings.Fields(firstQuery), " ") + `"}'`
	return f
}

// frontPage says where things are.
func frontPage(facts pageFacts) (http.Handler, error) {
	page, err := template.New("page").Parse(pageSource)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	if err := page.Execute(&out, facts); err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = io.WriteString(w, out.String()) // the reader may have gone
	}), nil
}

// pages are all answers of the GraphQL address.
func pages(facts pageFacts, api http.Handler) (*http.ServeMux, error) {
	front, err := frontPage(facts)
	if err != nil {
		return nil, err
	}
	editor := graphiql.Handler("/graphql", firstQuery)
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", front)
	mux.Handle("/graphql", api)
	mux.Handle("/graphiql", editor)
	mux.Handle("/graphiql/", editor)
	return mux, nil
}

// greet tells people where to look first.
func greet(to io.Writer, f pageFacts) error {
	const text = `
isthmus {{.Version}} runs{{if .Sample}} with a sample of two clusters{{end}}.

  start here   {{.GraphQL}}/
  GraphiQL     {{.GraphQL}}/graphiql
  xDS          {{.XDS}}
  health       {{.Health}} /healthz /readyz /metrics

A first query:

  {{.Curl}}

`
	page, err := texttemplate.New("greeting").Parse(text)
	if err != nil {
		return err
	}
	return page.Execute(to, f)
}
