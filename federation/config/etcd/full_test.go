package etcd

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// TestR10FullDiskIsNotDamage: no message says to remove a store because the disk is full.
func TestR10FullDiskIsNotDamage(t *testing.T) {
	broken := make(failure, 1)
	logger := zap.New(zapcore.NewNopCore(), zap.WithFatalHook(broken))
	for problem, advice := range map[string]string{
		"write db: no space left on device": "free space on its disk",
		"write db: input/output error":      "restore a backup",
	} {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			logger.Fatal("failed to commit tx", zap.Error(errors.New(problem)))
		}()
		<-ended
		why := damagedBy(<-broken).Error()
		if !strings.Contains(why, problem) || !strings.Contains(why, advice) || strings.Contains(why, "--new-store") == strings.Contains(why, "free space") {
			t.Errorf("%s gives %s", problem, why)
		}
	}
}
