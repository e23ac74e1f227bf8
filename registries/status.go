package registries

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
)

// shownStatus is the status of a cluster that is shown, and what it is made of. It is
// guarded by member.mu.
type shownStatus struct {
	reported  federation.RegistryStatus // by the current instance
	published federation.RegistryStatus
	notice    string // why a newer configuration is not in use
	leaving   bool   // it is being detached
}

// compose is the status to show: what the registry reports, together with what only the
// supervisor knows: the list that is held and the last known good state that is served,
// if any.
func (c *shownStatus) compose(held *hold, served *saved, now func() time.Time) federation.RegistryStatus {
	s := c.reported
	if s.Phase == "" {
		s.Phase = federation.Pending
	}
	if served != nil {
		s.LastKnownGood = served.Saved
		if s.Phase != federation.Failed && s.Phase != federation.Held {
			s.Phase = federation.Stale
		}
		s.Message = join(s.Message, "served as it was at "+served.Saved.UTC().Format(time.RFC3339))
	}
	if held != nil {
		s.Phase = federation.Held
		s.Message = join(held.message(), s.Message)
	}
	s.Message = join(s.Message, c.notice)
	if c.leaving {
		s.Phase, s.Message = federation.Detaching, "it is being detached"
	}
	if s.Phase == c.published.Phase {
		s.Since = c.published.Since
	} else if s.Since.IsZero() || s.Phase != c.reported.Phase {
		s.Since = now()
	}
	return s
}

// answered drops the trouble that was reported before the cluster sent a list: whatever
// becomes of the list, the cluster can be read.
func (c *shownStatus) answered(candidate bool) {
	switch {
	case candidate:
		c.notice = ""
	case c.reported.Phase == federation.Stale || c.reported.Phase == federation.Failed:
		c.reported = federation.RegistryStatus{Phase: federation.Syncing}
	}
}

func join(parts ...string) string {
	var said []string
	for _, part := range parts {
		if part != "" {
			said = append(said, part)
		}
	}
	return strings.Join(said, "; ")
}

// compose is the status to show. The caller holds mu.
func (m *member) compose() federation.RegistryStatus {
	return m.status.compose(heldBy(m.current, m.candidate), m.known.shown(), m.options.Now)
}

func heldBy(instances ...*instance) *hold {
	for _, i := range instances {
		if i != nil && i.hold != nil {
			return i.hold
		}
	}
	return nil
}

// publishStatus shows the status if it differs from the one that is shown.
func (m *member) publishStatus() {
	if s := m.compose(); s != m.status.published {
		m.update(federation.Edit{Status: &s})
		m.shown(s)
	}
}

// shown notes the status that is published, and logs each change of the phase. Registries do not log it themselves: they
// also run for a look at a cluster that is not attached.
func (m *member) shown(s federation.RegistryStatus) {
	before := m.status.published
	m.status.published = s
	if s.Phase == before.Phase {
		return
	}
	level := slog.LevelInfo
	if s.Phase == federation.Stale || s.Phase == federation.Held || s.Phase == federation.Failed {
		level = slog.LevelWarn
	}
	m.options.Logger.Log(context.Background(), level, "cluster phase changed", slog.String("cluster", string(m.shard.Cluster)),
		slog.String("provider", string(m.shard.Provider)), slog.String("phase", string(s.Phase)), slog.String("previous", string(before.Phase)),
		slog.String("reason", s.Message))
}

// report takes a status that the instance's registry gave.
func (m *member) report(r *attempt, s federation.RegistryStatus) {
	r.instance.foreign = s.Phase == federation.Held
	if r.instance == m.candidate {
		if s.Message != "" {
			m.status.notice = "the newer configuration is not in use: " + s.Message
		}
		m.publishStatus()
		return
	}
	s.LastKnownGood = time.Time{}
	m.status.reported = r.statusFrom(s, m.status.reported)
	if s.Phase == federation.Failed || s.Phase == federation.Held {
		m.finishStart()
		return
	}
	m.publishStatus()
}

// statusFrom keeps the last status of an instance that is restarted until it has
// something to say, and calls none READY that has not read its cluster.
func (r *attempt) statusFrom(now, before federation.RegistryStatus) federation.RegistryStatus {
	if r.synced {
		return now
	}
	if now.Phase == federation.Ready {
		now.Phase = federation.Syncing
	}
	beginning := now.Phase == federation.Syncing || now.Phase == federation.Pending
	if beginning && (before.Phase == federation.Failed || before.Phase == federation.Stale || before.Phase == federation.Ready) {
		return before
	}
	return now
}
