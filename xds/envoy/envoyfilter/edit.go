package envoyfilter

import (
	"slices"

	"google.golang.org/protobuf/proto"
)

// list is a list in which a patch finds items.
type list[T proto.Message] struct {
	items []T
	named bool // the patch names items; else it means all of them, or the list
	match func(T) bool
	end   int // where ADD puts items
}

// edit carries out the operation on the list. matched: there was something to do.
func edit[T proto.Message](j *job, in list[T]) (items []T, matched bool, err error) {
	at := slices.IndexFunc(in.items, in.match)
	switch j.op {
	case add:
		return insert(j, in.items, in.end), true, nil
	case insertFirst:
		if in.named && at < 0 {
			return in.items, false, nil
		}
		return insert(j, in.items, 0), true, nil
	case insertBefore, insertAfter:
		return insertBeside(j, in, at)
	}
	if at < 0 {
		return in.items, false, nil
	}
	if j.op == remove {
		return slices.DeleteFunc(slices.Clone(in.items), in.match), true, nil
	}
	items = slices.Clone(in.items)
	for i, item := range items {
		switch {
		case !in.match(item):
		case j.op == replace:
			items[i] = proto.Clone(j.value).(T)
		default:
			if err := j.merge(item); err != nil {
				return nil, true, err
			}
		}
	}
	return items, true, nil
}

// insertBeside inserts beside the item that the patch names. Without a name, it inserts at an end of
// the list.
func insertBeside[T proto.Message](j *job, in list[T], at int) ([]T, bool, error) {
	switch {
	case !in.named && j.op == insertBefore:
		return insert(j, in.items, 0), true, nil
	case !in.named:
		return insert(j, in.items, in.end), true, nil
	case at < 0:
		return in.items, false, nil
	case j.op == insertAfter:
		return insert(j, in.items, at+1), true, nil
	}
	return insert(j, in.items, at), true, nil
}

func insert[T proto.Message](j *job, items []T, at int) []T {
	return slices.Insert(slices.Clone(items), at, proto.Clone(j.value).(T))
}

// legacyNames are old names of filters that EnvoyFilters still have.
var legacyNames = map[string]string{
	"envoy.http_connection_manager": "envoy.filters.network.http_connection_manager",
	"envoy.tcp_proxy":               "envoy.filters.network.tcp_proxy",
	"envoy.router":                  "envoy.filters.http.router",
	"envoy.cors":                    "envoy.filters.http.cors",
	"envoy.fault":                   "envoy.filters.http.fault",
	"envoy.listener.tls_inspector":  "envoy.filters.listener.tls_inspector",
}

// isNamed reports whether a filter has the name, which may be an old one; any filter has none.
func isNamed(filter interface{ GetName() string }, name string) bool {
	current, old := legacyNames[name]
	return name == "" || filter.GetName() == name || old && filter.GetName() == current
}
