// Package web is what the GraphQL address serves beside the API: the pages, and the name of the caller.
package web

import (
	_ "embed" // the page
	"html/template"
	"io"
	"net/http"
	"strings"
	texttemplate "text/template"

	"isthmus.dev/isthmus/graph/graphiql"
	"isthmus.dev/isthmus/internal/hub/settings"
	"isthmus.dev/isthmus/internal/version"
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

// examples are the tabs that GraphiQL opens for a first visitor.
var examples = []string{
	"# The services of the mesh, of all clusters.\nquery Services " + firstQuery,
	`# The state of each cluster, and what the hub
# does not use of its data.
query Problems {
  clusters {
    nodes {
      clusterID
      status { phase message }
      problems { nodes { code object field message } }
    }
  }
}
`,
	`# What proxies accept of their configuration.
query Proxies {
  proxies {
    nodes {
      nodeID
      clusterID
      sync { typeUrl state lastError }
    }
  }
}
`,
	`# What was done to the configuration.
query History {
  history(first: 10) {
    nodes {
      revision createdAt author message
      changes { action object { kind namespace name } }
    }
  }
}
`,
	`# Changes of the mesh, as they happen.
subscription Changes {
  changes {
    cursor
    resync
    services {
      action
      service { hostname namespace }
    }
    clusters {
      action
      cluster { clusterID status { phase } }
    }
  }
}
`,
}

//go:embed page.html
var pageSource string

// Facts are what the page and the greeting say of this hub.
type Facts struct {
	Version, GraphQL, XDS, Health string
	Curl                          string
	Sample                        bool
}

// FactsOf are those of the settings.
func FactsOf(s settings.Settings) Facts {
	f := Facts{Version: version.Version, XDS: s.Addresses.XDS.At, Health: s.Addresses.Health.At, Sample: s.Sample}
	f.Curl = "curl -s "
	scheme := "https://"
	if s.Dev {
		scheme = "http://"
	}
	f.GraphQL = scheme + s.Addresses.GraphQL.At
	if path, isUnix := strings.CutPrefix(s.Addresses.GraphQL.At, "unix:"); isUnix {
		f.Curl += "--unix-socket " + path + " "
		f.GraphQL = scheme + "localhost"
	}
	f.Curl += f.GraphQL + `/graphql -H 'content-type: application/json' -d '{"query":"` + strings.Join(strings.Fields(firstQuery), " ") + `"}'`
	return f
}

// frontPage says where things are.
func frontPage(facts Facts) (http.Handler, error) {
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
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = io.WriteString(w, out.String()) // the reader may have gone
	}), nil
}

// pages are all answers of the GraphQL address.
func pages(facts Facts, api http.Handler) (*http.ServeMux, error) {
	front, err := frontPage(facts)
	if err != nil {
		return nil, err
	}
	editor := graphiql.Handler("/graphql", firstQuery, examples...)
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", front)
	mux.Handle("/graphql", api)
	mux.Handle("/graphiql", editor)
	mux.Handle("/graphiql/", editor)
	return mux, nil
}

// Greet tells people where to look first.
func Greet(to io.Writer, f Facts) error {
	const text = `
isthmus {{.Version}} runs{{if .Sample}} with a sample of two clusters, as long as you attach none{{end}}.

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
