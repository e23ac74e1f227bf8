package session_test

import (
	"testing"
	"time"

	"github.com/spf13/pflag"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/session"
)

// TestR63TheDefaultTimeoutFitsTheManifests: 5,000 objects take a busy machine a minute.
// What the caller says stays.
func TestR63TheDefaultTimeoutFitsTheManifests(t *testing.T) {
	t.Setenv("ISTHMUS_CONFIG", "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, c := range []struct {
		flags     []string
		manifests int
		want      time.Duration
	}{
		{nil, 1000, 30 * time.Second},
		{nil, 2 << 20, 94 * time.Second},
		{nil, 16 << 20, 2 * time.Minute},
		{[]string{"--timeout=30s"}, 2 << 20, 30 * time.Second},
		{[]string{"--timeout=5m"}, 2 << 20, 5 * time.Minute},
	} {
		var flags session.Flags
		f := pflag.NewFlagSet("apply", pflag.ContinueOnError)
		flags.Bind(f)
		if err := f.Parse(c.flags); err != nil {
			t.Fatal(err)
		}
		s, err := flags.Open(cmdutil.Streams{})
		if err != nil {
			t.Fatal(err)
		}
		s.AllowFor(c.manifests)
		s.Close()
		if s.Timeout != c.want {
			t.Errorf("%v: for %d bytes the hub has %s, want %s", c.flags, c.manifests, s.Timeout, c.want)
		}
	}
}
