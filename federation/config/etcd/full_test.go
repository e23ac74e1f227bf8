package etcd

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// TestR10FullDiskIsNotDamage: no message says to remove a store because its disk refuses writes.
func TestR10FullDiskIsNotDamage(t *testing.T) {
	for problem, advice := range map[string]string{
		"write db: no space left on device": "free space on its disk",
		"write db: read-only file system":   "make the folder writable",
		"write db: input/output error":      "check its disk",
		"walpb: crc mismatch":               "--new-store",
	} {
		in := newInside()
		logger := zap.New(zapcore.NewNopCore(), zap.WithFatalHook(in))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			logger.Fatal("failed to commit tx", zap.Error(errors.New(problem)))
		}()
		<-ended
		why := damagedBy(in.ended()).Error()
		if !strings.Contains(why, problem) || !strings.Contains(why, advice) ||
			strings.Contains(why, "--new-store") != (advice == "--new-store") {
			t.Errorf("%s gives %s", problem, why)
		}
	}
}
