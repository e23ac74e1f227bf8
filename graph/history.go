package graph

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

// recordsAtOnce is how many records are read at once when all are needed.
const recordsAtOnce = 100

// needsAll reports whether a page needs the whole of a list that is read from its
// front.
func needsAll(ctx context.Context, last *int) bool {
	if last != nil {
		return true
	}
	for _, field := range graphql.CollectAllFields(ctx) {
		if field == "totalCount" {
			return true
		}
	}
	return false
}

func pageSize(first *int) int {
	if first == nil {
		return model.DefaultPage
	}
	return *first
}

// History lists what was done to the configuration.
func (q query) History(
	ctx context.Context, first *int, after *string, last *int, before *string,
	filter *model.HistoryFilter, orderBy *model.HistoryOrder, _ *string,
) (*model.ConfigRevisionConnection, error) {
	if q.Config.History == nil {
		return nil, errNoConfig
	}
	var by order[model.ConfigRevision]
	if orderBy != nil {
		by = newOrder(orderBy.Field, orderBy.Direction, historyOrders)
	}
	window, err := window("history"+by.name, first, after, last, before)
	if err != nil {
		return nil, err
	}
	wanted, err := newRecordFilter(filter)
	if err != nil {
		return nil, err
	}
	from, most := model.KeyRevision(window.After), pageSize(first)+1
	if orderBy != nil || needsAll(ctx, last) {
		from, most = 0, math.MaxInt
	}
	found, err := records(ctx, q.Config.History, from, most, wanted)
	if err != nil {
		return nil, shown(err)
	}
	all := make([]model.ConfigRevision, len(found))
	for i, r := range found {
		all[i] = model.NewConfigRevision(r)
	}
	list := model.ListOf("history", all, model.ConfigRevision.Key)
	return &model.ConfigRevisionConnection{Page: by.page(list, window)}, nil
}

// historyOrders are what changes of the configuration can be sorted by.
var historyOrders = map[model.HistoryOrderField]func(model.ConfigRevision) string{
	model.HistoryOrderFieldRevision: func(of model.ConfigRevision) string { return fmt.Sprintf("%020s", of.Revision) },
	model.HistoryOrderFieldAuthor:   func(of model.ConfigRevision) string { return value(of.Author) },
}

// records reads records that fit, from below a revision on, up to so many.
func records(ctx context.Context, from History, below int64, most int, wanted recordFilter) ([]config.Record, error) {
	var all []config.Record
	batch := recordsAtOnce
	if wanted.HistoryFilter == (model.HistoryFilter{}) {
		batch = min(most, recordsAtOnce)
	}
	for len(all) < most {
		some, err := from.Records(ctx, below, batch)
		if err != nil || len(some) == 0 {
			return all, err
		}
		below = some[len(some)-1].Revision
		for _, r := range some {
			if wanted.fits(r) {
				all = append(all, r)
			}
		}
	}
	return all, nil
}

// History lists what was done to one object, up to the revision that the operation
// reads.
func (r objectResolver) History(
	ctx context.Context, of *model.ConfigObject, first *int, after *string, last *int, before *string,
) (*model.ConfigObjectRevisionConnection, error) {
	name := "history of " + of.Of.Key.String()
	window, err := window(name, first, after, last, before)
	if err != nil {
		return nil, err
	}
	if r.Config.ObjectHistory == nil {
		return nil, errNoConfig
	}
	found, err := r.Config.ObjectHistory.History(ctx, of.Of.Key)
	if err != nil {
		return nil, shown(err)
	}
	steps := found.Steps
	if seen, err := configured(ctx); err == nil {
		steps = slices.DeleteFunc(steps, func(s config.Step) bool { return s.Revision > seen.Revision() })
	}
	all := make([]model.ConfigObjectRevision, len(steps))
	for i, s := range steps {
		all[i] = model.NewConfigObjectRevision(s)
	}
	page := readTogether(r.resolver, model.NewPage(model.ListOf(name, all, model.ConfigObjectRevision.Key), window),
		func(s *model.ConfigObjectRevision) (int64, *model.Recorded) { return s.Of, &s.Recorded })
	return &model.ConfigObjectRevisionConnection{Page: page, Compacted: found.Compacted}, nil
}

// objectAt finds an object of the store of record as of a revision.
func objectAt(ctx context.Context, from History, key federation.ObjectKey, at string) (*model.ConfigObject, error) {
	var read reader
	revision := read.revision("at", at)
	if len(read.errs) > 0 {
		return nil, transport.BadArgument("at", "%s", read.errs[0].Message)
	}
	if from == nil {
		return nil, errNoConfig
	}
	all, err := from.At(ctx, revision)
	if err != nil {
		return nil, shown(err)
	}
	for i := range all {
		if all[i].Key != key || kind.Internal(key.Of()) {
			continue
		}
		found := model.NewConfigObject(&all[i])
		found.Source = model.ConfigSourceKindEtcd
		found.SourceName = "etcd"
		if view, err := configured(ctx); err == nil && len(view.Sources) > 0 {
			found.SourceName = view.Sources[0].Name
			found.Source = sourceKind(found.SourceName)
		}
		return &found, nil
	}
	return nil, nil
}
