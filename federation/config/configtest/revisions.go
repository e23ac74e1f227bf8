package configtest

import (
	"sync/atomic"

	"isthmus.dev/isthmus/federation/config"
)

// Noting is the sink, of whose updates the latest revision is noted. With it, who writes what a source reads knows the
// revision before the write.
func Noting(to config.Sink, latest *atomic.Int64) config.Sink { return noting{to, latest} }

type noting struct {
	config.Sink
	latest *atomic.Int64
}

func (n noting) Update(u config.Update) {
	n.latest.Store(u.Revision)
	n.Sink.Update(u)
}
