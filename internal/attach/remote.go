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

// RemoteLabel marks the Secrets that name clusters, as Istio has them.
const RemoteLabel = "istio/multiCluster=true"

// Remote is a cluster that a Secret of an attached cluster names.
type Remote struct {
	Secret     string // NAMESPACE/NAME
	Key        string // of its data: the ID that the Secret asks for
	Kubeconfig kube.Secret
}

// RemoteTaker takes what the Secrets of attached clusters say. It is called by
// several goroutines, one at a time for each holder.
type RemoteTaker interface {
	// Named is all that the Secrets of the holder name now, sorted.
	Named(holder federation.ClusterID, all []Remote)
	// Unreadable says why they cannot be read; what was named stays. Unasked: the
	// account may not read them and never could.
	Unreadable(holder federation.ClusterID, why string, unasked bool)
}

// RemoteOptions are what Remotes works with. Logger may be nil.
type RemoteOptions struct {
	Namespace string // of the Secrets
	Snapshots interface{ Latest() *federation.Snapshot }
	To        RemoteTaker
	Logger    *slog.Logger
}

// Remotes reads the Secrets of attached clusters that name further clusters.
type Remotes struct {
	o  RemoteOptions
	mu sync.Mutex
	// speaks is who is heard of each holder: the latest that has read it.
	speaks map[federation.ClusterID]uint64
	read   map[federation.ClusterID]bool // who could ever be read
	last   uint64
}

// NewRemotes makes Remotes.
func NewRemotes(o RemoteOptions) *Remotes {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Remotes{o: o, speaks: map[federation.ClusterID]uint64{}, read: map[federation.ClusterID]bool{}}
}

// Follow reads the Secrets of a cluster, while it proves that it is the known one, until
// the context ends. On trouble what
// was read stays. Several may follow one cluster while its credentials are
// rotated.
func (r *Remotes) Follow(ctx context.Context, holder federation.ClusterID, cluster *listwatch.Cluster) {
	r.mu.Lock()
	r.last++
	f := &remoteReader{Remotes: r, holder: holder, cluster: cluster, turn: r.last}
	r.mu.Unlock()
	f.run(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.speaks[holder] == f.turn {
		delete(r.speaks, holder) // the Secrets of another cluster that still reads count again
	}
}

// say tells what is named, unless a later reader was heard already.
func (f *remoteReader) say() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.speaks[f.holder] > f.turn {
		return
	}
	f.speaks[f.holder], f.read[f.holder] = f.turn, true
	var all []Remote
	for name, s := range f.known {
		for key, value := range s.data {
			all = append(all, Remote{Secret: name.String(), Key: key, Kubeconfig: value})
		}
	}
	slices.SortFunc(all, func(a, b Remote) int { return cmp.Or(cmp.Compare(a.Secret, b.Secret), cmp.Compare(a.Key, b.Key)) })
	f.o.To.Named(f.holder, all)
}

// complain tells why nothing can be read, unless another reader is heard.
func (f *remoteReader) complain(why string, refused bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if by := f.speaks[f.holder]; by == 0 || by == f.turn {
		f.o.To.Unreadable(f.holder, why, refused && !f.read[f.holder])
	}
}
