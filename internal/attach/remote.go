package attach

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// RemoteKind is a kind of objects of an attached cluster that name further clusters.
type RemoteKind int

// The kinds of objects that name clusters.
const (
	Secrets  RemoteKind = iota // Istio's remote secrets
	Profiles                   // ClusterProfiles of KEP-4322
)

// Remote is a cluster that an object of an attached cluster names.
type Remote struct {
	Object     string // NAMESPACE/NAME
	Key        string // the ID that the object asks for
	Kubeconfig kube.Secret
	Refused    string // why there is no kubeconfig; empty: there is one
}

// RemoteTaker takes what the objects of attached clusters say. It is called by
// several goroutines, one at a time for each holder and kind.
type RemoteTaker interface {
	// Named is all that the objects of the holder name now, sorted.
	Named(holder federation.ClusterID, by RemoteKind, all []Remote)
	// Unreadable says why they cannot be read; what was named stays. Unasked: the
	// account may not read them and never could.
	Unreadable(holder federation.ClusterID, by RemoteKind, why string, unasked bool)
}

// RemoteOptions are what Remotes works with. Logger may be nil.
type RemoteOptions struct {
	Namespace string // of the objects
	Snapshots interface{ Latest() *federation.Snapshot }
	To        RemoteTaker
	Logger    *slog.Logger
}

// Remotes reads the objects of attached clusters that name further clusters.
type Remotes struct {
	o    RemoteOptions
	by   RemoteKind
	read func(context.Context, *clusterReader) // until the context ends
	mu   sync.Mutex
	// active is the reader of each holder that counts: the latest that has read it.
	active map[federation.ClusterID]uint64
	known  map[federation.ClusterID]bool // who could ever be read
	last   uint64
}

func newRemotes(o RemoteOptions, by RemoteKind, read func(context.Context, *clusterReader)) *Remotes {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Remotes{o: o, by: by, read: read, active: map[federation.ClusterID]uint64{}, known: map[federation.ClusterID]bool{}}
}

// Follow reads what names clusters in a cluster, while it proves that it is the known one,
// until the context ends. On trouble what
// was read stays. Several may follow one cluster while its credentials are
// rotated.
func (r *Remotes) Follow(ctx context.Context, holder federation.ClusterID, cluster *listwatch.Cluster) {
	r.mu.Lock()
	r.last++
	v := &clusterReader{Remotes: r, holder: holder, cluster: cluster, turn: r.last}
	r.mu.Unlock()
	if v.awaitIdentity(ctx) {
		r.read(ctx, v)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active[holder] == v.turn {
		delete(r.active, holder) // what another client still reads of the cluster counts again
	}
}

// clusterReader is one client that reads one cluster. Of several, the latest that has read it
// counts.
type clusterReader struct {
	*Remotes
	holder  federation.ClusterID
	cluster *listwatch.Cluster
	turn    uint64
}

// awaitIdentity waits until it is known who the cluster is. A cluster that is attached
// under another ID, too, stays unknown and is not asked.
func (v *clusterReader) awaitIdentity(ctx context.Context) bool {
	for {
		s := v.o.Snapshots.Latest()
		if c, shown := s.Cluster(v.holder); shown && c.Identity.UID != "" {
			return true
		}
		select {
		case <-s.Superseded():
		case <-ctx.Done():
			return false
		}
	}
}

// publish publishes what is named, unless a later reader already has.
func (v *clusterReader) publish(all []Remote) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.active[v.holder] > v.turn {
		return
	}
	v.active[v.holder], v.known[v.holder] = v.turn, true
	slices.SortFunc(all, func(a, b Remote) int { return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Key, b.Key)) })
	v.o.To.Named(v.holder, v.by, all)
}

// publishTrouble publishes why nothing can be read, unless another reader has read the cluster.
func (v *clusterReader) publishTrouble(why string, refused bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if by := v.active[v.holder]; by == 0 || by == v.turn {
		v.o.To.Unreadable(v.holder, v.by, why, refused && !v.known[v.holder])
	}
}
