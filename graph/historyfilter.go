package graph

import (
	"slices"
	"time"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

// recordFilter says which changes of the configuration are listed.
type recordFilter struct {
	model.HistoryFilter           // zero: all
	since, until        time.Time // zero: any
}

func newRecordFilter(in *model.HistoryFilter) (recordFilter, error) {
	filter := recordFilter{HistoryFilter: value(in)}
	var err error
	filter.since, err = filterTime("filter.since", filter.Since)
	if err != nil {
		return filter, err
	}
	filter.until, err = filterTime("filter.until", filter.Until)
	return filter, err
}

func filterTime(argument string, text *string) (time.Time, error) {
	if text == nil {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		return at, transport.BadArgument(argument, "%q is not a time in RFC 3339 format, such as 2026-11-21T10:00:00Z", cut(*text))
	}
	return at, nil
}

func (f recordFilter) fits(r config.Record) bool {
	return fits(f.Author, r.Author) && !r.Time.Before(f.since) && (f.until.IsZero() || r.Time.Before(f.until)) &&
		(f.Group == nil && f.Kind == nil && f.Namespace == nil && f.Name == nil || slices.ContainsFunc(r.Changes, f.changed))
}

// changed reports whether the change is of an object that is asked for.
func (f recordFilter) changed(c config.RecordedChange) bool {
	return !kind.Internal(c.Key.Of()) && fits(f.Group, c.Key.Group) && fits(f.Kind, c.Key.Kind) &&
		fits(f.Namespace, c.Key.Namespace) && fits(f.Name, c.Key.Name)
}
