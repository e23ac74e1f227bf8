package kubernetes

import "testing"

// TestEveryKindThatMayGoIsKept: what the model has of a kind can be told, or its objects would never be
// removed after a list without them.
func TestEveryKindThatMayGoIsKept(t *testing.T) {
	for kind, row := range rows {
		if row.put == nil || (row.kept == nil) != row.permanent {
			t.Errorf("kind %d (%s): put %t, kept %t, permanent %t", kind, row.title, row.put != nil, row.kept != nil, row.permanent)
		}
	}
}
