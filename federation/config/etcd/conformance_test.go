package etcd_test

import (
	"path/filepath"
	"testing"

	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	configtest.Run(t, func(t *testing.T) configtest.Store {
		s := open(t, filepath.Join(t.TempDir(), "etcd"))
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s.Config(etcd.ConfigOptions{CheckpointRecords: 5, Patience: configtest.Patience}) // its limits have tests of their own
	})
}
