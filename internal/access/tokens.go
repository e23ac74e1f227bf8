package access

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// Bounds of what is remembered and of what is asked (S10, S23).
const (
	rememberGood  = 5 * time.Minute
	rememberBad   = time.Minute
	maxRemembered = 10_000
	// reviewAgain is the least time between two reviews of the token of a stream
	// that goes on.
	reviewAgain = 20 * time.Second
)

// TokenOptions are what Tokens work with. Audiences and Clusters are required.
type TokenOptions struct {
	Audiences []string // of which a token must have one
	Clusters  Clusters
	Now       func() time.Time // default time.Now
}

// Tokens has tokens checked by the cluster that made them. It may be used by several
// goroutines.
type Tokens struct {
	o       TokenOptions
	reviews singleflight.Group

	mu       sync.Mutex
	clients  map[federation.ClusterID]*attached
	known    map[question]answer
	throttle throttle
}

// NewTokens has no cluster yet.
func NewTokens(o TokenOptions) *Tokens {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Tokens{o: o, clients: map[federation.ClusterID]*attached{}, known: map[question]answer{}, throttle: newThrottle()}
}

// Attach lets tokens of the cluster be reviewed by the client until detach is called,
// while the cluster proves to be the known one. A later client takes the place of an
// earlier one, and what was remembered is forgotten.
func (t *Tokens) Attach(id federation.ClusterID, client clients.Interface, cluster *listwatch.Cluster) (detach func()) {
	return t.attach(id, kubernetesTokens{client, cluster})
}

func (t *Tokens) attach(id federation.ClusterID, by maker) (detach func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := newAttached(by)
	t.clients[id] = mine
	t.forget(id)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.clients[id] == mine {
			delete(t.clients, id)
			t.forget(id)
		}
	}
}

func (t *Tokens) forget(cluster federation.ClusterID) {
	for q, a := range t.known {
		if a.cluster == cluster {
			delete(t.known, q)
		}
	}
}

// errThrottled is the error of a workload or a source that failed too often.
var errThrottled = errors.New("too many of your tokens were refused; wait a minute")

// check tells whose token it is and when it ends. A refusal is definite; every
// other error means that it could not be found out.
func (t *Tokens) check(ctx context.Context, from netip.Addr, cluster federation.ClusterID, token Token) (Account, error) {
	who := bucketKeyOf(from, cluster, t.makerOf(cluster).subject(token))
	if !t.mayTry(&who) && !t.isGood(cluster, token) {
		return Account{}, errThrottled
	}
	attached, err := t.judge(cluster, token)
	if no := (refusal{}); errors.As(err, &no) {
		t.failed(&who)
	}
	if err != nil {
		return Account{}, err
	}
	a, err := t.remembered(ctx, inquiry{cluster: cluster, uid: attached.UID, token: token, who: &who})
	if err != nil {
		return Account{}, err
	}
	return a.account, a.refused
}

// over tells when a token expired, if it has. Machines keep the one of their first start and show it beside the
// certificate that they renew ever since.
func (t *Tokens) over(shown presented) (at time.Time, over bool) {
	c, err := shown.token.read()
	if err != nil || shown.consul || !c.over(t.o.Now()) {
		return time.Time{}, false
	}
	return c.ends(), true
}

// judge tells what can be told without the cluster.
func (t *Tokens) judge(cluster federation.ClusterID, token Token) (AttachState, error) {
	if err := t.makerOf(cluster).read(token, t.o.Audiences, t.o.Now()); err != nil {
		return AttachState{}, refusal{err.Error()}
	}
	attached := t.o.Clusters.AttachState(cluster)
	switch {
	case !attached.Attached:
		return AttachState{}, refusal{noCluster(cluster).Error()}
	case attached.Frozen != "":
		// The reason may have files and addresses of the hub; the status of the cluster has it.
		return AttachState{}, fmt.Errorf("the cluster %s is frozen: this hub accepts its tokens again when it is in order", cluster)
	}
	return attached, nil
}

// makerOf is who made the cluster's tokens; without a link, they are taken for those of Kubernetes.
func (t *Tokens) makerOf(cluster federation.ClusterID) maker {
	t.mu.Lock()
	defer t.mu.Unlock()
	if by := t.clients[cluster]; by != nil {
		return by.maker
	}
	return kubernetesTokens{}
}

// remembered asks the cluster where nothing is remembered; concurrent requests of the
// same at once cost one review.
func (t *Tokens) remembered(ctx context.Context, in inquiry) (answer, error) {
	t.mu.Lock()
	known, is := t.known[ask(in.cluster, in.token)]
	in.by, in.seen = t.clients[in.cluster], known.at
	t.mu.Unlock()
	if is && t.o.Now().Before(known.until) {
		if known.refused != nil {
			t.failed(in.who)
		}
		return known, nil
	}
	if in.by == nil {
		return answer{}, fmt.Errorf("the cluster %s cannot review tokens: none of its API servers that the hub can reach reviews tokens", in.cluster)
	}
	select {
	case r := <-t.ask(ctx, in):
		if r.Err != nil {
			return answer{}, r.Err
		}
		return r.Val.(answer), nil
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

// inquiry is a token and who reviews it.
type inquiry struct {
	by      *attached
	cluster federation.ClusterID
	uid     string // of kube-system
	token   Token
	who     *bucketKey // nil: the token was good before
	seen    time.Time  // when the answer that does not suffice was found; zero: there was none
}

func (in inquiry) source() netip.Prefix {
	if in.who == nil {
		return netip.Prefix{}
	}
	return in.who.from
}

// ask begins a review, or joins the one that is under way; it does not wait. The
// review is remembered, and outlives the context.
func (t *Tokens) ask(ctx context.Context, in inquiry) <-chan singleflight.Result {
	q := ask(in.cluster, in.token)
	return t.reviews.DoChan(string(q[:]), func() (any, error) {
		// A review may have ended between the caller's look and this one.
		if a, is := t.newer(q, in); is {
			return a, nil
		}
		a, err := t.decide(in.by.review(context.WithoutCancel(ctx), t, in))
		switch {
		case errors.Is(err, errThrottled):
			return answer{}, err
		case err != nil:
			return answer{}, fmt.Errorf("the cluster %s cannot review the token: %w", in.cluster, err)
		}
		a.cluster = in.cluster
		if ends := a.account.Ends; !ends.IsZero() && ends.Before(a.until) {
			a.until = a.account.Ends
		}
		t.remember(q, a, in.by)
		return a, nil
	})
}

// still returns why the token was refused when it was looked at last. It does not
// wait: where that was long ago, the token is reviewed meanwhile, for the next
// call. While its cluster cannot tell, what was found before stays.
func (t *Tokens) still(cluster federation.ClusterID, token Token) error {
	now := t.o.Now()
	t.mu.Lock()
	known, is := t.known[ask(cluster, token)]
	by := t.clients[cluster]
	t.mu.Unlock()
	if is && known.refused != nil && now.Before(known.until) {
		return known.refused
	}
	attached := t.o.Clusters.AttachState(cluster)
	if by == nil || attached.Frozen != "" || is && now.Sub(known.at) < reviewAgain {
		return nil // what it claims was checked before
	}
	t.ask(context.Background(), inquiry{by: by, cluster: cluster, uid: attached.UID, token: token, seen: known.at})
	return nil
}

// mayTry reports whether neither the workload nor its source failed too often.
func (t *Tokens) mayTry(who *bucketKey) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return who == nil || t.throttle.may(*who, t.o.Now())
}

func (t *Tokens) failed(who *bucketKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if who != nil {
		t.throttle.failed(*who, t.o.Now())
	}
}
