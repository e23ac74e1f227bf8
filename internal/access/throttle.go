package access

import (
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/clientaddr"
)

// Refused tokens are counted twice: by the workload that the token claims to be of, at its source, so that one pod with a
// bad token does not lock out others behind the same NAT address; and by source, since claims cost an attacker nothing.
const (
	failures       = 10  // of a workload at a source, in a minute
	failuresSource = 100 // of a source, in a minute
	maxBuckets     = 10_000
)

// bucketKey is whom a failure is counted for.
type bucketKey struct {
	from     netip.Prefix
	workload question
}

// bucketKeyOf is whom a token of the subject is counted for. One that claims nothing is as all such of its source.
func bucketKeyOf(from netip.Addr, cluster federation.ClusterID, subject string) bucketKey {
	if subject == "" {
		return bucketKey{from: clientaddr.Of(from)}
	}
	return bucketKey{clientaddr.Of(from), ask(cluster, Token(subject))}
}

// throttle is for one goroutine at a time.
type throttle struct {
	workloads buckets[bucketKey]
	sources   buckets[netip.Prefix]
}

func newThrottle() throttle {
	return throttle{newBuckets[bucketKey](failures), newBuckets[netip.Prefix](failuresSource)}
}

func (t throttle) may(s bucketKey, now time.Time) bool {
	return t.workloads.has(s, now) && t.sources.has(s.from, now)
}

func (t throttle) failed(s bucketKey, now time.Time) {
	t.workloads.take(s, now)
	t.sources.take(s.from, now)
}

// buckets allow each key so many events a minute.
type buckets[K comparable] struct {
	perMinute int
	limiters  map[K]*rate.Limiter
}

func newBuckets[K comparable](perMinute int) buckets[K] {
	return buckets[K]{perMinute, map[K]*rate.Limiter{}}
}

func (b buckets[K]) has(key K, now time.Time) bool {
	l := b.limiters[key]
	return l == nil || l.TokensAt(now) >= 1
}

func (b buckets[K]) take(key K, now time.Time) {
	l := b.limiters[key]
	if l == nil {
		b.makeRoom(now)
		l = rate.NewLimiter(rate.Limit(b.perMinute)/60, b.perMinute)
		b.limiters[key] = l
	}
	l.AllowN(now, 1)
}

// makeRoom drops those that did not fail for long, else anyone.
func (b buckets[K]) makeRoom(now time.Time) {
	if len(b.limiters) < maxBuckets {
		return
	}
	for key, l := range b.limiters {
		if l.TokensAt(now) >= float64(b.perMinute) {
			delete(b.limiters, key)
		}
	}
	for key := range b.limiters {
		if len(b.limiters) < maxBuckets {
			return
		}
		delete(b.limiters, key)
	}
}
