package mesh

import (
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/federation/config/writeback"
	"isthmus.dev/isthmus/internal/hub/sources"
)

// opened are the sources of each kind, in order of precedence.
type opened []sources.Opened

func open(o Options, set *schema.Set, status *writeback.Writer) (all opened) {
	hub := sources.Hub{
		ID: o.Hub, Epoch: o.Store.Epoch(), Schemas: set, Snapshots: o.Snapshots, Status: status, Kept: o.Kept, Limits: o.Limits, Logger: o.Logger,
	}
	for _, kind := range sources.All() {
		all = append(all, kind.Open(hub, o.Sources))
	}
	return all
}

// named are all sources, those of the store of record first.
func (all opened) named(record config.Named) []config.Named {
	named := []config.Named{record}
	for _, o := range all {
		named = append(named, o.Sources...)
	}
	return named
}

// learn tells the sources what is in force.
func (all opened) learn(views *config.Aggregate) {
	for _, o := range all {
		if o.Views != nil {
			o.Views(views)
		}
	}
}

func (all opened) readers() (readers []sources.ClusterReader) {
	for _, o := range all {
		if o.Reader != nil {
			readers = append(readers, o.Reader)
		}
	}
	return readers
}

// parts are what statuses in clusters are computed from.
func (all opened) parts(views *config.Aggregate) writeback.Parts {
	parts := writeback.Parts{Views: views}
	for _, o := range all {
		if o.Shown != nil {
			o.Shown(&parts)
		}
	}
	return parts
}
