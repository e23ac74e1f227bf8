package csr

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/identity/authority"
)

// Limits bound how many certificates are signed in a second, of one workload of a
// cluster (all its pods together) and of all. A burst is what may come at once.
type Limits struct {
	Workload, All           float64
	WorkloadBurst, AllBurst int
}

// DefaultLimits let a large deployment start at once.
var DefaultLimits = Limits{Workload: 20, WorkloadBurst: 1000, All: 200, AllBurst: 4000}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits
	if l.Workload <= 0 {
		l.Workload = d.Workload
	}
	if l.WorkloadBurst <= 0 {
		l.WorkloadBurst = d.WorkloadBurst
	}
	if l.All <= 0 {
		l.All = d.All
	}
	if l.AllBurst <= 0 {
		l.AllBurst = d.AllBurst
	}
	return l
}

type client struct {
	workload authority.Workload
	cluster  federation.ClusterID
}

// limits counts with one bucket for each client; those that are full are dropped
// where there are many.
type limits struct {
	o   Limits
	all *rate.Limiter

	mu      sync.Mutex
	clients map[client]*rate.Limiter
}

const maxClients = 10_000

func newLimits(o Limits) *limits {
	o = o.withDefaults()
	return &limits{o: o, all: rate.NewLimiter(rate.Limit(o.All), o.AllBurst), clients: map[client]*rate.Limiter{}}
}

func (l *limits) allow(c client, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.clients[c]
	if own == nil {
		l.makeRoom(now)
		own = rate.NewLimiter(rate.Limit(l.o.Workload), l.o.WorkloadBurst)
		l.clients[c] = own
	}
	return own.AllowN(now, 1) && l.all.AllowN(now, 1)
}

func (l *limits) makeRoom(now time.Time) {
	if len(l.clients) < maxClients {
		return
	}
	for c, own := range l.clients {
		if own.TokensAt(now) >= float64(l.o.WorkloadBurst) {
			delete(l.clients, c)
		}
	}
	if len(l.clients) >= maxClients {
		clear(l.clients)
	}
}
