package memory

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestR06MemoryLimitOfTheContainer: the Go runtime aims at nine tenths of it, but
// for what the environment says.
func TestR06MemoryLimitOfTheContainer(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	container := func() (uint64, error) { return 4 << 30, nil }
	for name, test := range map[string]struct {
		provider func() (uint64, error)
		given    string
		want     int64
		logged   string
	}{
		"Limited":   {container, "", int64(4<<30) * 9 / 10, "memory limit set from the cgroup"},
		"Unlimited": {func() (uint64, error) { return 0, errors.New("no cgroup") }, "", math.MaxInt64, ""},
		"Given":     {container, "1GiB", math.MaxInt64, ""},
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetMemoryLimit(math.MaxInt64)
			t.Setenv("GOMEMLIMIT", test.given)
			if test.given == "" {
				_ = os.Unsetenv("GOMEMLIMIT")
			}
			var log bytes.Buffer
			Limit(test.provider, slog.New(slog.NewTextHandler(&log, nil)))
			if got := debug.SetMemoryLimit(-1); got != test.want && got != test.want-1 {
				t.Errorf("the limit is %d, want %d", got, test.want)
			}
			if !strings.Contains(log.String(), test.logged) || test.logged == "" && log.Len() > 0 {
				t.Errorf("logged: %s", log.String())
			}
		})
	}
}
