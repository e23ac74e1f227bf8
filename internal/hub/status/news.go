package status

import (
	"slices"

	"isthmus.dev/isthmus/federation/config/writeback/wanted"
	"isthmus.dev/isthmus/federation/fleet"
)

// lastNews is what News told last. It is for one reader.
type lastNews struct {
	fleet    uint64
	refusals map[fleet.Key]string // of the streams that refuse something
}

// News is part of writeback.Proxies. A proxy that refuses something else may do so because of
// any object: all are news then.
func (w Written) News() (n wanted.News) {
	n.Objects, n.Services = w.Reasons()
	w.last.follow(w.Fleet.Latest(), &n)
	return n
}

// follow applies what changed in the fleet.
func (h *lastNews) follow(now *fleet.Value, n *wanted.News) {
	changes := now.ChangesSince(h.fleet)
	n.Moved = changes.From != changes.To // what is built may be different, too
	h.fleet = now.Version()
	if changes.All {
		changes.Changed, changes.Gone = slices.Collect(now.Proxies()), nil
		n.All, h.refusals = true, nil
	}
	if h.refusals == nil {
		h.refusals = map[fleet.Key]string{}
	}
	for _, key := range changes.Gone {
		n.All = n.All || h.refusals[key] != ""
		delete(h.refusals, key)
	}
	for _, p := range changes.Changed {
		h.take(p, n)
	}
}

// take handles how a stream is now.
func (h *lastNews) take(p *fleet.Proxy, n *wanted.News) {
	refuses := p.Refusals()
	n.All = n.All || h.refusals[p.Key()] != refuses
	delete(h.refusals, p.Key())
	if refuses != "" {
		h.refusals[p.Key()] = refuses
	}
}
