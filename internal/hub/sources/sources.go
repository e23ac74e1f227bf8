// Package sources has the kinds of sources of configuration that the hub reads beside the store of
// record.
package sources

import (
	"context"
	"log/slog"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/mcp"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/federation/config/writeback"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// Settings are those of all kinds.
type Settings struct {
	Servers []mcp.Server // of configuration
	Dir     string       // of manifests; empty: none
	// NoCustomResources: those of attached clusters are not configuration.
	NoCustomResources bool
}

// Kind is one kind of source.
type Kind struct {
	Name    string // in sources of the config file
	Setting string // of the config file, without which there is nothing to read; empty: none
	// Given reports whether the settings have something to read.
	Given func(Settings) bool
	// Off has the kind not read; nil: it always is, and sources of the config file does not list it.
	Off  func(*Settings)
	Open func(Hub, Settings) Opened
}

// All are the kinds of sources, in order of precedence (ADR 15). A new one is a line here.
func All() []Kind {
	return []Kind{servers, files, customResources, ingresses, gateways}
}

// Listed are the kinds that sources of the config file may list, in order of precedence.
func Listed() (listed []Kind) {
	for _, k := range All() {
		if k.Off != nil {
			listed = append(listed, k)
		}
	}
	return listed
}

// Hub is what sources may use of the hub.
type Hub struct {
	ID        federation.ClusterID
	Epoch     string // of the store of record
	Schemas   *schema.Set
	Snapshots *federation.Aggregate
	Status    *writeback.Writer          // of objects in clusters
	Kept      func(source string) string // the folder of what a source gave last
	Limits    federation.Limits          // of the objects of one cluster, and of one server
	Logger    *slog.Logger
}

// Opened are the sources of one kind.
type Opened struct {
	Sources []config.Named
	// Views has them learn what is in force; nil: they do not depend on it.
	Views func(*config.Aggregate)
	// Reader reads objects of attached clusters; nil: they have none.
	Reader ClusterReader
	// Shown adds their part of what statuses in clusters are computed from; nil: they have none.
	Shown func(*writeback.Parts)
}

// ClusterReader reads what is configuration of a cluster until the context ends.
type ClusterReader interface {
	Follow(ctx context.Context, id federation.ClusterID, cluster *listwatch.Cluster)
}

func one(name string, source config.Source) []config.Named {
	return []config.Named{{Name: name, Source: source}}
}
