package clientaddr

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestSources(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1": "10.0.0.1/32", "::ffff:10.0.0.1": "10.0.0.1/32", "2001:db8::1": "2001:db8::/64", "2001:db8:0:1:2:3:4:5": "2001:db8:0:1::/64",
		"fe80::1%eth0": "fe80::/64",
	} {
		if got := Of(netip.MustParseAddr(address)); got.String() != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
	if got := Of(netip.Addr{}); got.IsValid() {
		t.Errorf("no address: got %s", got)
	}
	if tcp, socket := Text(netip.MustParseAddr("10.0.0.1")), Text(netip.Addr{}); tcp != "10.0.0.1" || socket != "unix" {
		t.Errorf("the log names them %s and %s", tcp, socket)
	}
}

// TestR12FloodOfTheLog: a source that is refused all the time gets a few lines, then one now and then that says how many
// are missing, and another source still gets its lines.
func TestR12FloodOfTheLog(t *testing.T) {
	var written bytes.Buffer
	now := time.Now()
	l := NewLog(slog.New(slog.NewTextHandler(&written, nil)))
	l.now = func() time.Time { return now }
	bad, other := Of(netip.MustParseAddr("10.0.0.1")), Of(netip.MustParseAddr("10.0.0.2"))
	for range 1000 {
		l.Warn(bad, "refusing")
	}
	if n := strings.Count(written.String(), "refusing"); n != perSourceBurst {
		t.Errorf("%d lines", n)
	}
	written.Reset()
	l.Warn(other, "refusing")
	now = now.Add(perSourceEvery)
	l.Warn(bad, "refusing")
	if got := written.String(); strings.Count(got, "refusing") != 2 || strings.Count(got, "suppressed=995") != 1 {
		t.Errorf("got %s", got)
	}
	written.Reset()
	for i := range 1000 {
		l.Warn(Of(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})), "refusing")
	}
	if n := strings.Count(written.String(), "refusing"); n > allBurst {
		t.Errorf("%d lines of many sources", n)
	}
}

// TestU40InformationTakesNoLineOfAWarning: what many healthy callers provoke hides no warning.
func TestU40InformationTakesNoLineOfAWarning(t *testing.T) {
	var written bytes.Buffer
	now := time.Now()
	l := NewLog(slog.New(slog.NewTextHandler(&written, nil)))
	l.now = func() time.Time { return now }
	for i := range 1000 {
		l.Info(Of(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})), "an expired token")
	}
	if n := strings.Count(written.String(), "level=INFO"); n != allBurst {
		t.Errorf("%d lines, want %d", n, allBurst)
	}
	l.Warn(Of(netip.MustParseAddr("10.0.0.1")), "refusing")
	if got := written.String(); !strings.Contains(got, "level=WARN msg=refusing\n") {
		t.Errorf("the warning is missing, or counts what it does not mean: %s", got[max(0, len(got)-200):])
	}
}
