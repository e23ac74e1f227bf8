package registries

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
)

// compose is the status to show: what the registry reports, together with what
// only the supervisor knows. The caller holds mu.
func (m *member) compose() federation.RegistryStatus {
	s := m.reported
	if s.Phase == "" {
		s.Phase = federation.Pending
	}
	if m.served && m.restored != nil {
		s.LastKnownGood = m.restored.Saved
		if s.Phase != federation.Failed && s.Phase != federation.Held {
			s.Phase = federation.Stale
		}
		s.Message = join(s.Message, "served as it was at "+m.restored.Saved.UTC().Format(time.RFC3339))
	}
	if h := m.held(); h != nil {
		s.Phase = federation.Held
		s.Message = join(h.message(), s.Message)
	}
	s.Message = join(s.Message, m.notice)
	if m.leaving {
		s.Phase, s.Message = federation.Detaching, "it is being detached"
	}
	if s.Phase == m.published.Phase {
		s.Since = m.published.Since
	} else if s.Since.IsZero() || s.Phase != m.reported.Phase {
		s.Since = m.options.Now()
	}
	return s
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

func (m *member) held() *hold {
	for _, i := range []*instance{m.current, m.candidate} {
		if i != nil && i.hold != nil {
			return i.hold
		}
	}
	return nil
}

// publishStatus shows the status if it differs from the one that is shown.
func (m *member) publishStatus() {
	if s := m.compose(); s != m.published {
		m.update(federation.Edit{Status: &s})
		m.shown(s)
	}
}

// shown notes the status that is published, and logs each change of the phase. Registries do not log it themselves: they
// also run for a look at a cluster that is not attached.
func (m *member) shown(s federation.RegistryStatus) {
	before := m.published
	m.published = s
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
			m.notice = "the newer configuration is not in use: " + s.Message
		}
		m.publishStatus()
		return
	}
	s.LastKnownGood = time.Time{}
	m.reported = r.believable(s, m.reported)
	if s.Phase == federation.Failed || s.Phase == federation.Held {
		m.settle()
		return
	}
	m.publishStatus()
}

// believable keeps the last status of an instance that starts anew until it has
// something to say, and calls none READY that has not read its cluster.
func (r *attempt) believable(now, before federation.RegistryStatus) federation.RegistryStatus {
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
