package graph

import (
	"fmt"
	"testing"
)

func TestSpansAreThoseOfTheFirstRequest(t *testing.T) {
	s := newSpans()
	for _, step := range []struct {
		key       requestKey
		now, want span
	}{
		{requestKey{}, span{1, 2}, span{1, 2}},
		{requestKey{author: "ops"}, span{2, 3}, span{2, 3}},
		{requestKey{"ops", "unchanged"}, span{3, 3}, span{3, 3}},
		{requestKey{"ops", "unchanged"}, span{4, 5}, span{4, 5}},
		{requestKey{"ops", "a"}, span{5, 7}, span{5, 7}},
		{requestKey{"ops", "a"}, span{9, 9}, span{5, 7}},
		{requestKey{"ops", "a"}, span{9, 11}, span{5, 7}},
		{requestKey{"dev", "a"}, span{11, 12}, span{11, 12}},
		{requestKey{"ops", "a"}, span{13, 14}, span{5, 7}},
	} {
		if got := s.first(step.key, step.now); got != step.want {
			t.Errorf("%v at %v: %v, want %v", step.key, step.now, got, step.want)
		}
	}
	for i := range mostSpans {
		s.first(requestKey{"ops", fmt.Sprint(i)}, span{20, 21})
	}
	if got := s.first(requestKey{"ops", "a"}, span{30, 31}); got != (span{30, 31}) || len(s.of) != mostSpans || len(s.oldest) != mostSpans {
		t.Errorf("%d are kept, the oldest among them: %v", len(s.of), got)
	}
}
