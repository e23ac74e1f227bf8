package hub

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

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
			limitMemory(test.provider, slog.New(slog.NewTextHandler(&log, nil)))
			if got := debug.SetMemoryLimit(-1); got != test.want && got != test.want-1 {
				t.Errorf("the limit is %d, want %d", got, test.want)
			}
			if !strings.Contains(log.String(), test.logged) || test.logged == "" && log.Len() > 0 {
				t.Errorf("logged: %s", log.String())
			}
		})
	}
}

// TestR06LimitsOfClusters are read from the file: a cluster's own, else those of
// all, else the defaults.
func TestR06LimitsOfClusters(t *testing.T) {
	c, err := parseConfig("f", []byte("clusterLimits: {objects: 7, bytes: 64Mi}\nclusters:\n- {id: a, provider: Mock, limits: {objects: 9, pages: 3}}\n- {id: b, provider: Mock}\n"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.ClusterLimits.limits("clusterLimits")
	if err != nil {
		t.Fatal(err)
	}
	with, usual := surroundings{limits: all}, federation.Limits{}.WithDefaults()
	if got, want := with.limitsOf(c.Clusters[0]), (federation.Limits{Objects: 9, Pages: 3, Bytes: 64 << 20}); got != want {
		t.Errorf("a has %+v, want %+v", got, want)
	}
	if got, want := with.limitsOf(c.Clusters[1]), (federation.Limits{Objects: 7, Pages: usual.Pages, Bytes: 64 << 20}); got != want {
		t.Errorf("b has %+v, want %+v", got, want)
	}
	for text, part := range map[string]string{
		"clusterLimits: {objects: -1}": "clusterLimits.objects: -1", "clusterLimits: {bytes: much}": `clusterLimits.bytes: "much"`,
		"clusters: [{id: a, provider: Mock, limits: {pages: -2}}]": "clusters[0].limits.pages: -2",
	} {
		if _, err := parseConfig("f", []byte(text)); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %s", text, err, part)
		}
	}
}

// TestR06ClusterObjectsSetLimits as the file does: what one does not set, all clusters
// have. Other limits are another registry.
func TestR06ClusterObjectsSetLimits(t *testing.T) {
	object := func(objects int) clusterConfig {
		c, err := configOf(&config.Object{
			Key:      federation.ObjectKey{Name: "a"},
			Manifest: fmt.Appendf(nil, `{"spec": {"provider": "Mock", "limits": {"objects": %d, "bytes": "64Mi"}}}`, objects),
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c, with := object(9), surroundings{limits: federation.Limits{Objects: 7, Pages: 5}, logger: slog.New(slog.DiscardHandler)}
	if got, want := with.limitsOf(c), (federation.Limits{Objects: 9, Pages: 5, Bytes: 64 << 20}); got != want {
		t.Errorf("it has %+v, want %+v", got, want)
	}
	o := objectClusters{with: with}
	k, err := with.kindOf(c.Provider)
	if err != nil {
		t.Fatal(err)
	}
	before, err := o.registry(k, c, "")
	if err != nil {
		t.Fatal(err)
	}
	if after, err := o.registry(k, object(10), ""); err != nil || after.Fingerprint == before.Fingerprint {
		t.Errorf("with other limits it is the same registry, %v", err)
	}
}
