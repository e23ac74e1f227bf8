package apply

import (
	"context"
	"fmt"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// historyPage is how many records are read at once, and maxHistory how many are
// looked through for one object.
const (
	historyPage = 100
	maxHistory  = 1000
)

// History returns what happened to an object, newest first, up to limit entries.
// It looks through the newest revisions only.
func (e *Engine) History(ctx context.Context, key federation.ObjectKey, limit int) ([]HistoryEntry, error) {
	var found []HistoryEntry
	before := int64(0)
	for looked := 0; looked < maxHistory; looked += historyPage {
		records, err := e.Log.Records(ctx, before, historyPage)
		if err != nil {
			return nil, fmt.Errorf("reading the history of %s: %w", key, err)
		}
		for _, r := range records {
			for _, c := range r.Changes {
				if c.Key != key {
					continue
				}
				if found = append(found, entryOf(r, c)); len(found) == limit {
					return found, nil
				}
			}
			before = r.Revision
		}
		if len(records) < historyPage {
			break
		}
	}
	return found, nil
}

func entryOf(r config.Record, c config.RecordedChange) HistoryEntry {
	return HistoryEntry{Revision: r.Revision, Time: r.Time, Author: r.Author, Message: r.Message, Manager: r.Manager, Action: c.Action}
}

// Records returns up to limit revisions below the revision before, newest
// first; before 0 starts at the newest.
func (e *Engine) Records(ctx context.Context, before int64, limit int) ([]config.Record, error) {
	return e.Log.Records(ctx, before, limit)
}
