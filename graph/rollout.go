package graph

import (
	"context"
	"slices"
	"strings"
	"time"

	"isthmus.dev/isthmus/graph/model"
)

const (
	defaultWait = 30 * time.Second
	longestWait = 10 * time.Minute
	// answerTime is kept of the time that an operation has, to answer in it.
	answerTime = 500 * time.Millisecond
)

// waiting is what an answer waits for.
type waiting struct {
	state   model.WaitState
	share   float64
	timeout time.Duration
}

// wait reads what to wait for; nil: nothing.
func (r *reader) wait(in *model.WaitInput) *waiting {
	if in == nil {
		return nil
	}
	w := &waiting{state: in.State, share: 1, timeout: defaultWait}
	if in.Share != nil {
		w.share = *in.Share
	}
	if !(w.share >= 0 && w.share <= 1) {
		r.refuse("waitFor.share", "the share is from 0 to 1, not %v", w.share)
	}
	if in.Timeout != nil {
		w.timeout = r.duration("waitFor.timeout", *in.Timeout, lengths{0, longestWait})
	}
	return w
}

type lengths struct{ least, most time.Duration }

// duration reads a length of time within bounds.
func (r *reader) duration(field, text string, bounds lengths) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d < bounds.least || d > bounds.most {
		r.refuse(field, "%q is no length of time from %s to %s, such as 30s", cut(text), bounds.least, bounds.most)
	}
	return d
}

// span are the versions of the snapshot above after, up to upTo.
type span struct{ after, upTo uint64 }

// rollout says how far the versions are with the proxies, once what is waited
// for came to pass or the time is over. Where no version came of a request, as
// when it was repeated, what counts is that proxies have what is in force.
func (r *resolver) rollout(ctx context.Context, wait *waiting, of span) *model.Rollout {
	if r.Config.Rollouts == nil {
		return nil
	}
	if of.after == of.upTo {
		of.after = 0
	}
	states, changed := r.Config.Rollouts.Rollout(of.after, of.upTo)
	now := model.NewRollout(proxyRollouts(states))
	if wait == nil {
		return &now
	}
	ctx, cancel := context.WithTimeout(ctx, wait.within(ctx))
	defer cancel()
	for !wait.reached(now) && !wait.lost(now) {
		select {
		case <-changed:
			states, changed = r.Config.Rollouts.Rollout(of.after, of.upTo)
			now = model.NewRollout(proxyRollouts(states))
		case <-ctx.Done():
			now.Reached = new(bool)
			return &now
		}
	}
	reached := wait.reached(now)
	now.Reached = &reached
	return &now
}

// within is how long to wait, so that the operation still has an answer.
func (w *waiting) within(ctx context.Context) time.Duration {
	end, limited := ctx.Deadline()
	if !limited {
		return w.timeout
	}
	return min(w.timeout, time.Until(end)-answerTime)
}

func (w *waiting) reached(now model.Rollout) bool {
	has := now.Acked
	if w.state == model.WaitStateDelivered {
		has = now.Delivered
	}
	return float64(has) >= w.share*float64(len(now.All))
}

// lost tells that so many proxies refused that the share cannot be reached by
// waiting.
func (w *waiting) lost(now model.Rollout) bool {
	return w.state == model.WaitStateAcked && float64(len(now.All)-now.Rejected) < w.share*float64(len(now.All))
}

// proxyRollouts are in the order of node IDs.
func proxyRollouts(states []ProxyState) []model.ProxyRollout {
	all := make([]model.ProxyRollout, len(states))
	for i, s := range states {
		all[i] = model.ProxyRollout{NodeID: s.NodeID, State: s.State}
		if s.Error != "" {
			all[i].Error = &s.Error
		}
	}
	slices.SortFunc(all, func(a, b model.ProxyRollout) int { return strings.Compare(a.NodeID, b.NodeID) })
	return all
}

type rolloutResolver struct{}

func (rolloutResolver) Proxies(_ context.Context, of *model.Rollout, first *int, after *string, last *int, before *string) (model.ProxyRolloutConnection, error) {
	window, err := window("proxies of a rollout", first, after, last, before)
	return model.ProxyRolloutConnection{Page: model.NewPage(rolloutList("proxies of a rollout", of.All), window)}, err
}

func rolloutList(name string, all []model.ProxyRollout) model.List[model.ProxyRollout] {
	return model.List[model.ProxyRollout]{
		Name: name, Items: slices.Values(all), Count: func() int { return len(all) },
		Key: func(p model.ProxyRollout) string { return p.NodeID },
	}
}
