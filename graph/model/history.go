package model

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
)

// Recorded reads revisions of the configuration, all of one page together when the first of them is
// needed. It returns nil for one that the store no longer has.
type Recorded func(ctx context.Context, revision int64) (*ConfigRevision, error)

// ConfigObjectRevision is what a revision did to an object.
type ConfigObjectRevision struct {
	Revision  string
	Author    *string
	CreatedAt *time.Time
	Message   *string
	Action    *ChangeAction
	Manager   *string

	Of       int64 // the revision
	Recorded Recorded
}

// ConfigRevision is the whole revision.
func (r ConfigObjectRevision) ConfigRevision(ctx context.Context) (*ConfigRevision, error) {
	return r.Recorded(ctx, r.Of)
}

// NewConfigObjectRevision shows what a revision did to an object.
func NewConfigObjectRevision(s config.Step) ConfigObjectRevision {
	shown := ConfigObjectRevision{
		Of: s.Revision, Revision: Revision(s.Revision), Author: nonEmpty(s.Author), CreatedAt: known(s.Time),
		Message: nonEmpty(s.Message), Manager: nonEmpty(s.Manager),
	}
	if action := ChangeAction(s.Action); action != "" {
		shown.Action = &action
	}
	return shown
}

// Key orders revisions, the newest first.
func (r ConfigObjectRevision) Key() string { return revisionKey(r.Revision) }

// NewConfigRevision shows a record, without what is the hub's alone.
func NewConfigRevision(r config.Record) ConfigRevision {
	shown := ConfigRevision{
		ID: ID(KindRevision, Revision(r.Revision)), Revision: Revision(r.Revision), Author: nonEmpty(r.Author),
		CreatedAt: r.Time, Message: nonEmpty(r.Message),
		Manager: nonEmpty(r.Manager), Ticket: nonEmpty(r.Ticket), Changes: make([]RevisedObject, 0, len(r.Changes)),
	}
	for _, c := range r.Changes {
		if kind.Internal(c.Key.Of()) {
			continue
		}
		object := NewObjectRef(c.Key, r.Revision)
		if c.Action == config.Deleted {
			object.Revision = nil
		}
		shown.Changes = append(shown.Changes, RevisedObject{Action: ChangeAction(c.Action), Object: object})
	}
	return shown
}

// Key orders revisions, the newest first.
func (r ConfigRevision) Key() string { return revisionKey(r.Revision) }

func revisionKey(revision string) string {
	n, _ := strconv.ParseInt(revision, 10, 64) // Revision wrote it.
	return fmt.Sprintf("%019d", math.MaxInt64-n)
}

// KeyRevision reads what the Key of a revision writes; 0 for other texts.
func KeyRevision(key string) int64 {
	n, err := strconv.ParseInt(key, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return math.MaxInt64 - n
}
