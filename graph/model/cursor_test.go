package model_test

import (
	"testing"

	"isthmus.dev/isthmus/graph/model"
)

func FuzzBG08CursorKey(f *testing.F) {
	f.Add("services", model.Cursor("services", "a\x00b"))
	f.Add("clusters", model.Cursor("services", "a\x00b"))
	f.Add("services", "")
	f.Add("services", "c\rIJ_bWEAYg") // a line end inside
	f.Fuzz(func(t *testing.T, list, cursor string) {
		if key, ok := model.CursorKey(list, cursor); ok && (key == "" || model.Cursor(list, key) != cursor) {
			t.Errorf("%q is taken for the key %q", cursor, key)
		}
	})
}

func TestBG08CursorIsOfOneListAndWhole(t *testing.T) {
	cursor := model.Cursor("endpoints of cluster c1", "key")
	if key, ok := model.CursorKey("endpoints of cluster c1", cursor); !ok || key != "key" {
		t.Errorf("the cursor has the key %q, %v", key, ok)
	}
	if _, ok := model.CursorKey("endpoints of cluster c2", cursor); ok {
		t.Error("the cursor is taken by another list")
	}
	for cut := range cursor {
		if _, ok := model.CursorKey("endpoints of cluster c1", cursor[:cut]); ok {
			t.Errorf("the cursor is taken when it is cut after %d", cut)
		}
	}
}
