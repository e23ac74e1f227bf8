package etcd

import (
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestU46BurstsOfLeasedObjectsAreFewSteps: what changes after a quiet time is shown at once. While changes come every millisecond, there
// are ten steps in a second, and none of the changes is lost.
func TestU46BurstsOfLeasedObjectsAreFewSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b burst
		defer b.stop()
		one := []*clientv3.Event{{}}
		for range 3 { // each after a quiet time
			began := time.Now()
			b.add(one)
			<-b.due
			if n := len(b.take()); n != 1 || time.Since(began) != 0 {
				t.Errorf("%d events after %s", n, time.Since(began))
			}
			time.Sleep(leasedEvery)
		}
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		steps, shown, said := 0, 0, 0
		for said < 1000 {
			select {
			case <-ticker.C:
				b.add(one)
				said++
			case <-b.due:
				steps++
				shown += len(b.take())
			}
		}
		<-b.due
		shown += len(b.take())
		if steps > 11 || shown != said {
			t.Errorf("%d events came in %d steps with %d events", said, steps, shown)
		}
	})
}
