package filewatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestPollReportsChanges: each failure once, until it is another one, and its end.
func TestPollReportsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := []string{"a", "a", "b", "", "b", "b"}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(len(looks))*time.Minute+time.Second)
		defer cancel()
		var reported []string
		next := 0
		Poll(ctx, time.Minute, func() error {
			text := looks[next]
			next++
			if text != "" {
				return errors.New(text)
			}
			return nil
		}, func(err error) { reported = append(reported, fmt.Sprint(err)) })
		if next != len(looks) || !slices.Equal(reported, []string{"a", "b", "<nil>", "b"}) {
			t.Errorf("%d looks reported %q", next, reported)
		}
	})
}
