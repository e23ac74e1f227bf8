package scalar_test

import (
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/graph/scalar"
)

// R43: three digits of a second, always.
func TestR43DateTimeIsUTCAndNullWhenUnknown(t *testing.T) {
	var out strings.Builder
	scalar.MarshalDateTime(time.Date(2026, 11, 21, 12, 0, 0, 500_000_000, time.FixedZone("", 7200))).MarshalGQL(&out)
	scalar.MarshalDateTime(time.Time{}).MarshalGQL(&out)
	if out.String() != `"2026-11-21T10:00:00.500Z"null` {
		t.Errorf("got %s", out.String())
	}
	back, err := scalar.UnmarshalDateTime("2026-11-21T10:00:00.5Z")
	if err != nil || back.Nanosecond() != 500_000_000 {
		t.Errorf("got %v, %v", back, err)
	}
	if _, err := scalar.UnmarshalDateTime(7); err == nil {
		t.Error("a number is a DateTime")
	}
}

func TestDurationHasAUnit(t *testing.T) {
	var out strings.Builder
	scalar.MarshalDuration(90*time.Second + 1700*time.Microsecond).MarshalGQL(&out)
	if out.String() != `"1m30.002s"` {
		t.Errorf("got %s", out.String())
	}
	if back, err := scalar.UnmarshalDuration("1m30s"); err != nil || back != 90*time.Second {
		t.Errorf("got %v, %v", back, err)
	}
	if _, err := scalar.UnmarshalDuration("soon"); err == nil {
		t.Error("a word is a Duration")
	}
}
