// Package consul follows one Consul datacenter: its services with their
// instances become the shards of one cluster. Long polls by index keep it
// current; content is compared before anything is sent; nothing is removed
// without proof that the answer is complete and comes from the same Consul.
//
// The token needs service_prefix "" and node_prefix "" read: a Consul that hides
// something from a token looks like one that lost it.
//
// A service is translated like this:
//   - its name, a DNS label, goes through the hostname template; names that
//     differ by case only are all refused;
//   - tags KEY|VALUE and KEY=VALUE and the service meta are labels of the
//     instance, any other tag is the label tag.consul/TAG=true;
//   - the meta or tag "protocol" names the protocol of the instance's port
//     (default HTTP; unknown or contradictory: TCP), the meta "external" puts the
//     service outside of the mesh, as nodes without an agent do;
//   - passing and warning are HEALTHY, all else is UNHEALTHY, maintenance too;
//     the weight is that of Consul's DNS, and 0 beside others is DRAINING;
//   - virtual tagged addresses are VIPs, and so are other tagged addresses that
//     all instances share, but for the lan and wan ones;
//   - the locality is the instance's or its node's, else the datacenter is the
//     zone; the network is the tag topology.istio.io/network, else the cluster's;
//   - proxies, gateways, Consul itself, namespaces, partitions and peers are not
//     services, and instances have service accounts where the
//     section workloads maps services to them.
package consul

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/retry"
)

// Sink is what the registry speaks to. Update returns after the version that
// holds the edit is published.
type Sink interface {
	Update(federation.Edit)
	Status(federation.RegistryStatus)
}

// Registry follows one Consul. Run may be called once at a time.
type Registry struct {
	o         Options
	names     *naming
	accounts  *accounts  // of services; nil: they have none
	workloads *Workloads // nil: what Consul knows proves nothing
	expect    datacenterIdentity
	client    *client
	log       *slog.Logger
	lastEvent atomic.Int64
	lastSync  atomic.Int64
}

// Activity tells when the registry last said something new and when it last
// had a complete list. The zero time is never.
func (r *Registry) Activity() (lastEvent, lastSync time.Time) {
	return stamp(r.lastEvent.Load()), stamp(r.lastSync.Load())
}

func stamp(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

// Run follows Consul until the context ends and then returns nil; every trouble
// is one that may pass and is reported by Status. What was sent before stays as it
// is while there is trouble.
func (r *Registry) Run(ctx context.Context, to Sink) error {
	defer r.client.http.CloseIdleConnections()
	s := newSyncer(r, to)
	s.status(federation.Syncing, "reading the whole catalogue for the first time")
	pauses := newBackoff()
	for ctx.Err() == nil {
		began := time.Now()
		err := s.sync(ctx)
		synced := err == nil
		if synced {
			err = s.follow(ctx)
		}
		rethrow(err)
		if ctx.Err() != nil {
			break
		}
		r.client.http.CloseIdleConnections()
		if errors.Is(err, errRelist) {
			r.log.Info("reading the whole catalogue again")
			continue
		}
		s.report(s.named(ctx, err))
		if synced && time.Since(began) > steadyAfter {
			pauses.reset()
		}
		retry.Sleep(ctx, pauses.next(err))
	}
	return nil
}

func newSyncer(r *Registry, to Sink) *syncer {
	return &syncer{r: r, to: to, model: newModel(), guard: newGuard(r.client, r.expect), polls: r.o.MaxPolls}
}

// longestLimited is the longest wait of a datacenter that is beyond its limits.
const longestLimited = 4 * time.Minute

// steadyAfter is how long a link must have held, with a sync, for the waits between
// attempts to start from the shortest again.
const steadyAfter = 20 * time.Second

// report says a trouble as the cluster's status.
func (s *syncer) report(err error) {
	var r *refusal
	var odd *unreadable
	var limit federation.LimitError
	switch {
	case (errors.As(err, &limit) || errors.As(err, &odd)) && !s.synced:
		s.status(federation.Failed, err.Error())
	case errors.As(err, &r) && r.other:
		s.status(federation.Held, r.msg)
	case errors.As(err, &r) && !s.synced:
		s.status(federation.Failed, err.Error())
	default:
		s.status(federation.Stale, err.Error())
	}
}

// status is sent once until it changes.
func (s *syncer) status(phase federation.Phase, message string) {
	now := federation.RegistryStatus{Phase: phase, Message: message}
	if now == s.said {
		return
	}
	s.said = now
	s.to.Status(now)
}

// backoff is the pauses between attempts, by what was wrong. They are short enough
// to be back within 5 s of the return of Consul (F68). After a refusal they are
// longer, and a busy Consul says itself how long. To find out that a datacenter is still
// beyond its limits, nearly all of it must be read; a change of the limits starts a new
// registry, without a pause.
type backoff struct{ passing, busy, refused, odd, limited retry.Backoff }

func newBackoff() *backoff {
	return &backoff{
		passing: retry.Backoff{First: 250 * time.Millisecond, Longest: 3500 * time.Millisecond},
		busy:    retry.Backoff{First: 2 * time.Second, Longest: 12 * time.Second},
		refused: retry.Backoff{First: time.Second, Longest: 8 * time.Second},
		odd:     retry.Backoff{First: time.Second, Longest: 30 * time.Second},
		limited: retry.Backoff{First: time.Second, Longest: longestLimited},
	}
}

func isLimit(err error) bool {
	var limit federation.LimitError
	return errors.As(err, &limit)
}

func (b *backoff) reset() { *b = *newBackoff() }

func (b *backoff) next(err error) time.Duration {
	var r *refusal
	var full *busy
	var odd *unreadable
	var limit federation.LimitError
	switch {
	case errors.As(err, &limit):
		return b.limited.Next()
	case errors.As(err, &odd):
		return b.odd.Next()
	case errors.As(err, &full):
		return max(full.after, b.busy.Next())
	case errors.As(err, &r):
		return b.refused.Next()
	default:
		return b.passing.Next()
	}
}
