package federation

import "slices"

// journalSpan is how many changes a journal keeps at least. A reader that is
// further behind gets All.
const journalSpan = 16384

// entryKind is the first letter of a journal entry.
type entryKind string

const (
	serviceEntry entryKind = "s"
	clusterEntry entryKind = "c"
	addressEntry entryKind = "a"
	settingEntry entryKind = "g"
	objectEntry  entryKind = "o"
	networkEntry entryKind = "n"
	labelsEntry  entryKind = "l"
	keySetEntry  entryKind = "k"
	problemEntry entryKind = "p"
)

// record names what one version changed.
type record struct {
	version uint64
	entries []string // kind and key, sorted, each once
	before  *record  // nil: the first one of its half
}

// journal tells for the latest versions what they changed. It is a persistent
// value: a change costs one record, however many things exist. It has two
// halves, so that the older one is forgotten as a whole.
type journal struct {
	young, old *record // the latest of each half
	held       int     // entries of the young half
	turned     uint64  // last version before the young half
	compacted  uint64  // last version before the old half: changes up to it are forgotten
}

// since returns an entry for each key that changed after the version, in the order of kinds
// and keys; ok is false where changes may be forgotten. The journal keeps the entries.
func (j journal) since(version uint64) (found []string, ok bool) {
	if version < j.compacted {
		return nil, false
	}
	records := 0
	for _, latest := range [...]*record{j.young, j.old} {
		for r := latest; r != nil && r.version > version; r = r.before {
			records++
			if records == 1 {
				found = r.entries[:len(r.entries):len(r.entries)] // appending copies them
			} else {
				found = append(found, r.entries...)
			}
		}
	}
	if records > 1 {
		slices.Sort(found)
		found = slices.Compact(found)
	}
	return found, true
}

// after is the journal with one more version. It takes the entries over. A
// version that no reader needs to see leaves no record.
func (j journal) after(version uint64, entries []string) journal {
	if len(entries) == 0 {
		return j
	}
	slices.Sort(entries)
	entries = slices.Compact(entries)
	if j.held >= journalSpan {
		j = journal{old: j.young, compacted: j.turned, turned: version - 1}
	}
	j.young = &record{version: version, entries: entries, before: j.young}
	j.held += len(entries)
	return j
}
