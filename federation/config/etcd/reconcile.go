package etcd

import (
	"context"
	"encoding/json"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// missing names the records of the log that are not there. A start could not read
// over such a gap: what is known here of the state after it is made a checkpoint,
// unless there is one.
func (f *watcher) missing(ctx context.Context, entries []logEntry, indexed map[string]bool) ([]config.Problem, error) {
	var problems []config.Problem
	last := int64(0)
	for _, e := range entries {
		if indexed[e.Tx] {
			continue
		}
		gone, err := f.c.read.isMissing(ctx, e)
		if err != nil {
			return nil, err
		}
		if !gone {
			continue // it was written, or retired, meanwhile
		}
		last = e.Revision
		if !f.gaps[last] {
			f.gaps[last] = true
			f.c.o.Meter.Count(CountMissing, 1)
		}
		if len(problems) < shownUnknown {
			problems = append(problems, config.Problem{Code: codeHistory, Object: fmt.Sprintf("revision %d", last), Message: fmt.Sprintf(
				"the record of revision %d is missing: it cannot be shown, and nothing can be rolled back beyond it; restore a backup of the store if that is needed", last)})
		}
	}
	m := f.c.points.mark.Load()
	if last == 0 || m == nil || m.revision >= last || f.shown.revision < last || f.shown.suspects.Len() > 0 {
		return problems, nil
	}
	f.c.points.request(checkpointRequest{state: f.shown.state, gap: true})
	return problems, nil
}

// isMissing reports whether the log has the entry and the record is not there, as
// of one moment.
func (r records) isMissing(ctx context.Context, e logEntry) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Patience)
	defer cancel()
	answer, err := r.client.Txn(ctx).Then(clientv3.OpGet(logKey(e.Revision), clientv3.WithCountOnly()),
		clientv3.OpGet(indexFolder(e.Tx), clientv3.WithPrefix(), clientv3.WithCountOnly())).Commit()
	if err != nil {
		return false, err
	}
	return answer.Responses[0].GetResponseRange().Count == 1 && answer.Responses[1].GetResponseRange().Count == 0, nil
}

// duplicateUIDs names objects that say the same UID of themselves. All of them are shown:
// which one is right only people know.
func (f *watcher) duplicateUIDs() []config.Problem {
	if f.looked == f.shown {
		return f.duplicates
	}
	f.looked, f.duplicates = f.shown, nil
	first := map[string]federation.ObjectKey{}
	for _, e := range f.shown.all() {
		var m struct{ Metadata struct{ UID string } }
		if err := json.Unmarshal(e.New.Manifest, &m); err != nil || m.Metadata.UID == "" {
			continue
		}
		other, twice := first[m.Metadata.UID]
		if !twice {
			first[m.Metadata.UID] = e.New.Key
			continue
		}
		if len(f.duplicates) < shownUnknown {
			f.duplicates = append(f.duplicates, config.Problem{
				Code: codeDuplicateUID, Object: e.New.Key.String(), Field: "metadata.uid",
				Message: fmt.Sprintf("%s has the same UID; both are used: delete one of them and apply it again", other),
			})
		}
	}
	return f.duplicates
}
