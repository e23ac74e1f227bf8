package listwatch

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/retry"
)

// Run probes until the context ends and reports the end of every round: the UID of the
// known cluster, and why it did not prove itself.
func (c *Cluster) Run(ctx context.Context, report func(uid string, trouble error)) {
	for ctx.Err() == nil {
		c.begin()
		round := c.probe(ctx)
		if ctx.Err() != nil {
			return
		}
		report(c.end(round))
		retry.Await(ctx, c.pause(), c.wake)
	}
}

// pause is 10 % around the interval, so that many hubs do not probe at once;
// while the gate is closed it is shorter.
func (c *Cluster) pause() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	pause := c.every
	if c.trouble != nil {
		pause /= 3
	}
	return pause*9/10 + rand.N(pause/5+1)
}

// round is what a probe found.
type round struct {
	uid     string
	version uint64 // of the server's objects
	server  string // version of the server itself; empty: it does not say
	err     error
}

func (c *Cluster) probe(ctx context.Context) (found round) {
	ctx, cancel := context.WithTimeout(ctx, c.every)
	defer cancel()
	found = whose(ctx, c.client)
	if found.err == nil {
		found.server, found.err = c.version(ctx)
	}
	return found
}

// whose asks the server which cluster it is of.
func whose(ctx context.Context, client clients.Interface) (found round) {
	system, version, err := Identity(ctx, client)
	switch {
	case err != nil:
		return round{err: AccessError{Verb: "list", Resource: "namespaces", Err: err}}
	case system == nil:
		return round{err: errors.New("the server does not return namespace kube-system, whose UID identifies the cluster")}
	}
	found.version, _ = strconv.ParseUint(version, 10, 64)
	found.uid = string(system.UID)
	return found
}

// Identity returns the namespace whose UID tells one cluster from another (S47), and the version of the server's objects. The
// namespace is nil if the server does not show it. It lists: that is what an account that reads the cluster may do.
func Identity(ctx context.Context, client clients.Interface) (system *corev1.Namespace, version string, err error) {
	list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{FieldSelector: Named(metav1.NamespaceSystem), Limit: 1})
	if err != nil {
		return nil, "", err
	}
	if len(list.Items) == 0 || list.Items[0].Name != metav1.NamespaceSystem || list.Items[0].UID == "" {
		return nil, "", nil
	}
	return &list.Items[0], list.ResourceVersion, nil
}

// version is what the server says, or empty: not every server tells everyone. It is an
// error if the server does not answer in time: such a server proves nothing.
func (c *Cluster) version(ctx context.Context) (string, error) {
	v, err := discovery.ToServerVersionInterfaceWithContext(c.client.Discovery()).ServerVersionWithContext(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return "", AccessError{Verb: "get", Resource: "/version", Err: err}
	case err != nil:
		return "", nil
	}
	return v.GitVersion + " " + v.Major + "." + v.Minor, nil
}

func (c *Cluster) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started++
}

// end judges a round.
func (c *Cluster) end(found round) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.judge(found)
	switch {
	case err != nil && overloaded(err) && c.trouble == nil:
		// The server lives and asks for patience; what is open stays open.
	case err != nil:
		if c.trouble == nil {
			close(c.lost)
		}
		c.trouble = err
	default:
		if c.trouble != nil {
			c.lost = make(chan struct{})
		}
		c.uid, c.trouble = found.uid, nil
		if found.version < c.highest {
			c.nextEpoch()
		}
		c.highest = found.version
	}
	if err == nil {
		c.proved = c.started
	}
	close(c.changed)
	c.changed = make(chan struct{})
	return c.uid, err
}

// judge says what is wrong with the round. The caller holds the lock.
func (c *Cluster) judge(found round) error {
	switch {
	case found.err != nil && Untrusted(c.trouble):
		return c.trouble
	case found.err != nil:
		return found.err
	case c.uid != "" && c.uid != found.uid:
		return ForeignError{Want: c.uid, Have: found.uid}
	}
	err := c.steady.observe(found.server)
	if said := (UnsteadyError{}); err != nil && errors.As(c.trouble, &said) {
		return said
	}
	return err
}

// recentVersions are the versions that the server reported in the latest rounds.
type recentVersions struct {
	rounds [12]string // a ring; empty: nothing was said
	next   int
}

// mostVersions is what servers show that are upgraded one after the other.
const mostVersions = 2

// observe takes the version of a round and judges the latest ones.
func (s *recentVersions) observe(version string) error {
	s.rounds[s.next%len(s.rounds)] = version
	s.next++
	var distinct []string
	for _, v := range s.rounds {
		if v != "" && !slices.Contains(distinct, federation.Quote(v)) {
			distinct = append(distinct, federation.Quote(v))
		}
	}
	if len(distinct) <= mostVersions {
		return nil
	}
	slices.Sort(distinct)
	return UnsteadyError{strings.Join(distinct, ", ")}
}
