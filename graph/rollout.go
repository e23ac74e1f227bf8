package graph

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"isthmus.dev/isthmus/internal/retry"

	"isthmus.dev/isthmus/graph/model"
)

const (
	defaultWait = 30 * time.Second
	longestWait = 10 * time.Minute
	// answerTime is kept of the time that an operation has, to answer in it.
	answerTime = 500 * time.Millisecond
	// waitPace is the least time between two looks at a rollout, so that many proxies
	// that answer at once are counted together.
	waitPace = 10 * time.Millisecond
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
		r.refuse(field, "%q is not a duration from %s to %s, such as 30s", cut(text), bounds.least, bounds.most)
	}
	return d
}

// rollout is the progress of the request's versions with the proxies, after the wait has
// succeeded or timed out. If the request made no new version, it is the progress of the
// current configuration.
func (m mutation) rollout(ctx context.Context, wait *waiting, of span) *model.Rollout {
	if m.Config.Rollouts == nil {
		return nil
	}
	if of.after == of.upTo {
		of.after = 0
	}
	states, changed := m.Config.Rollouts.Rollout(of.after, of.upTo)
	now := model.NewRollout(proxyRollouts(states))
	if wait == nil {
		return &now
	}
	ctx, cancel := context.WithTimeout(ctx, wait.within(ctx))
	defer cancel()
	for !wait.reached(now) && !wait.lost(now) {
		if !retry.Sleep(ctx, waitPace) || !happens(ctx, changed) {
			now.Reached = new(bool)
			return &now
		}
		states, changed = m.Config.Rollouts.Rollout(of.after, of.upTo)
		now = model.NewRollout(proxyRollouts(states))
	}
	reached := wait.reached(now)
	now.Reached = &reached
	return &now
}

// uncounted notes that the answer to a wait does not cover the proxies of other hubs: if
// all proxies of this hub have a change, others may not have it yet.
func (m mutation) uncounted(of *model.Rollout) []model.Finding {
	if of == nil || !value(of.Reached) || m.Config.OtherHubs == nil {
		return nil
	}
	others := m.Config.OtherHubs()
	if others == 0 {
		return nil
	}
	of.Reached = nil
	hubs := "1 other hub runs on this store and was not counted"
	if others > 1 {
		hubs = fmt.Sprintf("%d other hubs run on this store and were not counted", others)
	}
	return []model.Finding{{Code: "OTHER_HUBS_NOT_COUNTED", Severity: model.SeverityWarning, Message: fmt.Sprintf(
		"%s: %d of the %d affected proxies of this hub have the change; whether those of other hubs have it is not known here: look at each hub",
		hubs, of.Delivered-of.Rejected, of.Affected())}}
}

// happens waits; false: the context ended first.
func happens(ctx context.Context, event <-chan struct{}) bool {
	select {
	case <-event:
		return true
	case <-ctx.Done():
		return false
	}
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
	return float64(has) >= w.share*float64(now.Affected())
}

// lost reports whether so many proxies refused that the share cannot be reached by
// waiting.
func (w *waiting) lost(now model.Rollout) bool {
	return w.state == model.WaitStateAcked && float64(now.Affected()-now.Rejected) < w.share*float64(now.Affected())
}

// rolloutKey names a proxy among those of a rollout. Clusters may have proxies with
// the same node ID.
func rolloutKey(p model.ProxyRollout) string { return p.NodeID + "\x00" + value(p.ClusterID) }

// proxyRollouts are in the order of node IDs, then of clusters.
func proxyRollouts(states []ProxyState) []model.ProxyRollout {
	all := make([]model.ProxyRollout, len(states))
	for i, s := range states {
		all[i] = model.ProxyRollout{NodeID: s.NodeID, State: s.State}
		if cluster := string(s.Cluster); cluster != "" {
			all[i].ClusterID = &cluster
		}
		if s.Error != "" {
			all[i].Error = &s.Error
		}
	}
	slices.SortStableFunc(all, func(a, b model.ProxyRollout) int { return strings.Compare(rolloutKey(a), rolloutKey(b)) })
	return all
}

type rolloutResolver struct{}

func (rolloutResolver) Proxies(
	ctx context.Context, of *model.Rollout, first *int, after *string, last *int, before *string, filter *model.ProxyRolloutFilter,
) (model.ProxyRolloutConnection, error) {
	window, err := window("proxies of a rollout", first, after, last, before)
	return model.ProxyRolloutConnection{Page: model.NewPage(rolloutList(ctx, "proxies of a rollout", of.All(), filter), window)}, err
}

// rolloutList has those of all that match.
func rolloutList(
	ctx context.Context, name string, all []model.ProxyRollout, filter *model.ProxyRolloutFilter,
) model.List[model.ProxyRollout] {
	if filter != nil && filter.State != nil {
		fits := func(p model.ProxyRollout) bool { return p.State == *filter.State }
		all = slices.Collect(fitting(inTime(ctx, slices.Values(all)), fits))
	}
	return model.List[model.ProxyRollout]{
		Name: name, Items: slices.Values(all), Count: func() int { return len(all) },
		Key: rolloutKey,
	}
}
