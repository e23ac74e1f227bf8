package graph

import (
	"iter"
	"slices"
	"strconv"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
)

// largestPage is how many things an event of a resync has at most.
const largestPage = 500

// subscriptionState is what a subscriber has seen: everything in the snapshot that it
// follows.
type subscriptionState struct {
	following
	snapshot *federation.Snapshot
	digest   model.Digest
	bytes    int // that it does not share with the state before it; see bytesOf
	show     func(*federation.Snapshot, *federation.Cluster) model.Cluster
	statusAt uint64       // up to which changes of statuses were sent
	streams  *fleet.Value // those of proxies, while all of them are sent; else nil
}

// next is the state of a later snapshot, and what differs. ok is false where
// that is not known (any more).
func (p subscriptionState) next(now *federation.Snapshot) (next subscriptionState, change model.Change, ok bool) {
	set := now.ChangesSince(p.snapshot.Version())
	if set.All {
		return p, change, false
	}
	next = p
	next.snapshot, next.bytes = now, bytesOf(set, p.snapshot)
	change = newChange(now)
	for _, c := range set.Services {
		before, _ := p.snapshot.Service(c.Key)
		after, _ := now.Service(c.Key)
		next.service(&change, before, after)
	}
	for _, id := range p.changedClusters(set, now) {
		before, _ := p.snapshot.Cluster(id)
		after, _ := now.Cluster(id)
		next.cluster(&change, versions[*federation.Cluster]{before, after}, p.snapshot)
	}
	for _, id := range set.Networks {
		before, _ := p.snapshot.Network(id)
		after, _ := now.Network(id)
		next.network(&change, before, after)
	}
	for _, c := range set.Objects {
		before, _ := p.snapshot.Object(c.Key)
		after, _ := now.Object(c.Key)
		next.object(&change, before, after)
	}
	return next, change, true
}

// changedClusters are those that the subscriber may see. The change set does not name a cluster of
// which only the numbers changed.
func (p subscriptionState) changedClusters(set federation.ChangeSet, now *federation.Snapshot) []federation.ClusterID {
	changed := set.Clusters
	if !p.counts {
		return changed
	}
	for c := range now.Clusters() {
		if before, _ := p.snapshot.Cluster(c.ID); before != c && !slices.Contains(set.Clusters, c.ID) {
			changed = append(changed, c.ID)
		}
	}
	return changed
}

func newChange(of *federation.Snapshot) model.Change {
	return model.Change{SnapshotVersion: strconv.FormatUint(of.Version(), 10), At: federation.PublishedAt(of)}
}

func isEmpty(c model.Change) bool { return size(c) == 0 }

func size(c model.Change) int {
	return len(c.Services) + len(c.Clusters) + len(c.ConfigObjects) + len(c.Networks) + len(c.Proxies)
}

// action is what happened to a thing, by whether it was and is followed.
func action(was, is bool) model.ChangeAction {
	switch {
	case was && is:
		return model.ChangeActionUpdate
	case is:
		return model.ChangeActionCreate
	default:
		return model.ChangeActionDelete
	}
}

func (p *subscriptionState) service(change *model.Change, before, after *federation.Service) {
	was, is := p.hasService(before), p.hasService(after)
	if !was && !is || before == after {
		return
	}
	shown := model.Service{From: p.snapshot, Of: replace(p, model.ServiceDigest, was, is, before, after)}
	change.Services = append(change.Services, model.ServiceChange{Action: action(was, is), Service: shown})
}

// replace has the digest count a thing as it is followed now, and returns it as it is to be shown.
func replace[T any](p *subscriptionState, digest func(T) model.Digest, was, is bool, before, after T) (shown T) {
	if was {
		p.digest = p.digest.Without(digest(before))
	}
	if !is {
		return before
	}
	p.digest = p.digest.With(digest(after))
	return after
}

// versions are a thing before and after a change; nil where it is not.
type versions[T any] struct{ before, after T }

func (p *subscriptionState) cluster(change *model.Change, v versions[*federation.Cluster], old *federation.Snapshot) {
	was, is := p.hasCluster(v.before), p.hasCluster(v.after)
	if !was && !is || was && is && p.sameCluster(*v.before, *v.after) {
		return
	}
	from, of := old, replace(p, p.clusterDigest, was, is, v.before, v.after)
	if is {
		from = p.snapshot
	}
	change.Clusters = append(change.Clusters, model.ClusterChange{Action: action(was, is), Cluster: p.show(from, of)})
}

// sameCluster compares clusters, without the numbers of services and endpoints where
// these are not followed.
func (f following) sameCluster(a, b federation.Cluster) bool {
	if !f.counts {
		a.Services, a.Endpoints = b.Services, b.Endpoints
	}
	return a == b
}

func (f following) clusterDigest(of *federation.Cluster) model.Digest {
	if f.counts {
		return model.CountedClusterDigest(of)
	}
	return model.ClusterDigest(of)
}

func (p *subscriptionState) network(change *model.Change, before, after *federation.Network) {
	was, is := p.hasNetwork(before), p.hasNetwork(after)
	if !was && !is || before == after {
		return
	}
	shown := replace(p, model.NetworkDigest, was, is, before, after)
	change.Networks = append(change.Networks, model.NetworkChange{Action: action(was, is), Network: model.Network{Of: shown}})
}

func (p *subscriptionState) object(change *model.Change, before, after *federation.Object) {
	was, is := p.hasObject(before), p.hasObject(after)
	if !was && !is || before == after {
		return
	}
	shown := replace(p, model.ObjectDigest, was, is, before, after)
	change.ConfigObjects = append(change.ConfigObjects, model.ConfigObjectChange{
		Action: action(was, is), Object: model.NewObjectRef(shown.Key, shown.Revision),
	})
}

// pages yields everything that is followed in the snapshot, the last page with
// last set; p is the whole state then. An empty state is one empty page.
func (p *subscriptionState) pages() iter.Seq2[model.Change, bool] {
	return func(yield func(change model.Change, last bool) bool) {
		page := p.page()
		for range p.things(&page) {
			if size(page) <= largestPage {
				continue
			}
			full, one := splitPage(page)
			if !yield(full, false) {
				return
			}
			page = one
		}
		yield(page, true)
	}
}

func (p *subscriptionState) page() model.Change {
	c := newChange(p.snapshot)
	c.Resync = true
	return c
}

// splitPage takes the last thing of the page into one of its own.
func splitPage(page model.Change) (full, one model.Change) {
	full, one = page, model.Change{SnapshotVersion: page.SnapshotVersion, At: page.At, Resync: page.Resync}
	switch {
	case len(page.Proxies) > 0:
		at := len(page.Proxies) - 1
		full.Proxies, one.Proxies = page.Proxies[:at], []model.ProxyChange{page.Proxies[at]}
	case len(page.Networks) > 0:
		at := len(page.Networks) - 1
		full.Networks, one.Networks = page.Networks[:at], []model.NetworkChange{page.Networks[at]}
	case len(page.ConfigObjects) > 0:
		at := len(page.ConfigObjects) - 1
		full.ConfigObjects, one.ConfigObjects = page.ConfigObjects[:at], []model.ConfigObjectChange{page.ConfigObjects[at]}
	case len(page.Services) > 0:
		at := len(page.Services) - 1
		full.Services, one.Services = page.Services[:at], []model.ServiceChange{page.Services[at]}
	default:
		at := len(page.Clusters) - 1
		full.Clusters, one.Clusters = page.Clusters[:at], []model.ClusterChange{page.Clusters[at]}
	}
	return full, one
}

// things adds one thing after the other to the page: clusters, services,
// configuration objects, networks, proxies.
func (p *subscriptionState) things(page *model.Change) iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		for c := range p.snapshot.Clusters() {
			p.cluster(page, versions[*federation.Cluster]{after: c}, nil)
			if !yield(struct{}{}) {
				return
			}
		}
		for s := range p.snapshot.Services().All() {
			p.service(page, nil, s)
			if !yield(struct{}{}) {
				return
			}
		}
		for o := range p.snapshot.Objects().All() {
			p.object(page, nil, o)
			if !yield(struct{}{}) {
				return
			}
		}
		for n := range p.snapshot.Networks() {
			p.network(page, nil, n)
			if !yield(struct{}{}) {
				return
			}
		}
		for of := range p.connected() {
			page.Proxies = append(page.Proxies, p.proxy(model.ChangeActionCreate, of))
			if !yield(struct{}{}) {
				return
			}
		}
	}
}
