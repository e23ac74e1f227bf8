package sources

import (
	"log/slog"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/crd"
	"isthmus.dev/isthmus/federation/config/file"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
	"isthmus.dev/isthmus/federation/config/ingress"
	configkind "isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/mcp"
	"isthmus.dev/isthmus/federation/config/writeback"
)

// always: attached clusters may have objects, whatever the settings are.
func always(Settings) bool { return true }

var servers = Kind{
	Name: "MCP", Setting: "mcp.servers",
	Given: func(s Settings) bool { return len(s.Servers) > 0 },
	Off:   func(s *Settings) { s.Servers = nil },
	Open: func(h Hub, s Settings) (o Opened) {
		if err := mcp.Forget(h.Kept("mcp"), s.Servers); err != nil {
			h.Logger.Warn("files of configuration servers that are not read any more stay on disk", slog.Any("err", err))
		}
		for _, server := range s.Servers {
			from := mcp.New(mcp.Options{
				Server: server, Known: h.Schemas.Kinds(), Schema: configkind.Schema{Set: h.Schemas}, Hub: h.ID, Origin: h.Epoch, Limits: h.Limits,
				Dir: h.Kept("mcp"), Logger: h.Logger,
			})
			o.Sources = append(o.Sources, config.Named{Name: server.Source(), Source: from})
		}
		return o
	},
}

var files = Kind{
	Name: "FILE", Setting: "configDir",
	Given: func(s Settings) bool { return s.Dir != "" },
	Off:   func(s *Settings) { s.Dir = "" },
	Open: func(h Hub, s Settings) Opened {
		if s.Dir == "" {
			return Opened{}
		}
		var kinds []federation.Kind
		for _, k := range h.Schemas.Kinds() {
			kinds = append(kinds, k.Kind)
		}
		folder := file.New(file.Options{Dir: s.Dir, Kinds: kinds, Schema: configkind.Schema{Set: h.Schemas}, Logger: h.Logger})
		return Opened{Sources: one("FILE", folder)}
	},
}

var customResources = Kind{
	Name: "CRD", Given: always,
	Off: func(s *Settings) { s.NoCustomResources = true },
	Open: func(h Hub, s Settings) Opened {
		custom := crd.New(crd.Options{
			Kinds:     append(slices.Clone(h.Schemas.Kinds()), crd.CoreKinds...),
			Ignored:   h.Schemas.Ignored(),
			Schema:    crd.WithCoreKinds(configkind.Schema{Set: h.Schemas, Newer: true}),
			Snapshots: h.Snapshots, Limits: h.Limits, Originals: h.Status, Dir: h.Kept("crd"), Off: s.NoCustomResources, Logger: h.Logger,
		})
		return Opened{
			Sources: one("CRD", custom), Reader: custom,
			Views: func(views *config.Aggregate) { custom.Settings(views) },
			Shown: func(p *writeback.Parts) { p.Resources = custom },
		}
	},
}

var ingresses = Kind{
	Name: "INGRESS", Given: always,
	Open: func(h Hub, _ Settings) Opened {
		logger := h.Logger.With(slog.String("source", "INGRESS"))
		reader := crd.New(crd.Options{
			Kinds: ingress.Kinds, Schema: ingress.Schema{}, Everywhere: ingress.Wanted,
			Snapshots: h.Snapshots, Limits: h.Limits, Originals: h.Status, Dir: h.Kept("ingress"), Logger: logger,
		})
		found := ingress.New(ingress.Options{Snapshots: h.Snapshots, Reader: reader, Logger: logger})
		return Opened{
			Sources: one("INGRESS", found), Reader: reader,
			Views: func(views *config.Aggregate) { found.Settings(views) },
			Shown: func(p *writeback.Parts) { p.Ingresses = reader },
		}
	},
}

// gateways are objects of the Gateway API, whatever source they are from, as those of Istio that they mean.
var gateways = Kind{
	Name: "GATEWAY_API", Given: always,
	Open: func(h Hub, _ Settings) Opened {
		meant := gatewayapi.New(gatewayapi.Options{Snapshots: h.Snapshots, Logger: h.Logger})
		return Opened{
			Sources: one("GATEWAY_API", meant),
			Views:   func(views *config.Aggregate) { meant.Views(views) },
			Shown:   func(p *writeback.Parts) { p.Gateways = meant.Statuses(h.Status.Translated) },
		}
	},
}
