package graph

import (
	"iter"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
)

// connected yields the streams of proxies that are followed, while all of them are
// sent.
func (p *subscriptionState) connected() iter.Seq[*fleet.Proxy] {
	return func(yield func(*fleet.Proxy) bool) {
		if p.streams == nil {
			return
		}
		for of := range p.streams.Proxies() {
			if p.hasProxy(of) && !yield(of) {
				return
			}
		}
	}
}

func (p *subscriptionState) proxy(action model.ChangeAction, of *fleet.Proxy) model.ProxyChange {
	return model.ProxyChange{Action: action, Proxy: model.NewProxy(p.snapshot, of)}
}

// nextStreams are the changes of the streams that the subscriber has.
func (f *changeFeed) nextStreams(before *fleet.Value, now subscriptionState) []model.ProxyChange {
	changes := f.fleet.ChangesSince(before.Version())
	changed, gone := changes.Changed, changes.Gone
	if changes.All { // many streams ended since
		there := map[fleet.Key]bool{}
		for of := range f.fleet.Proxies() {
			changed, there[of.Key()] = append(changed, of), true
		}
		for key := range f.streams {
			if !there[key] {
				gone = append(gone, key)
			}
		}
	}
	var sent []model.ProxyChange
	for _, key := range gone {
		if before := f.streams[key]; before != nil {
			sent = append(sent, now.proxy(model.ChangeActionDelete, before))
			delete(f.streams, key)
		}
	}
	for _, of := range changed {
		before := f.streams[of.Key()]
		if !now.hasProxy(of) || before == of {
			continue
		}
		sent = append(sent, now.proxy(action(before != nil, true), of))
		f.streams[of.Key()] = of
	}
	return sent
}
