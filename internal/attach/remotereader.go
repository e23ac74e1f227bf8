package attach

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/retry"
)

// How a reader goes on after trouble.
const (
	remotePause   = time.Second
	remoteLongest = 30 * time.Second
	// secondLook is the time until a list that lacks Secrets is believed (F44).
	secondLook = 2 * time.Second
	// remoteRenew is how long a watch is used before everything is listed again.
	remoteRenew = 5 * time.Minute
	remotePage  = 100
	// What one cluster may name, whatever its API server answers (R06).
	maxRemotePages = 100
	maxRemoteBytes = 128 << 20
)

// remoteReader follows the Secrets of one cluster with one client.
type remoteReader struct {
	*Remotes
	holder federation.ClusterID
	client *kube.Client
	turn   uint64
	known  map[string]map[string]kube.Secret // by name of the Secret; nil: never read
}

var (
	errEndsAtOnce = errors.New("the server ends the watch at once")
	errEndless    = errors.New("the list of Secrets has no end, or is larger than 128 MiB; nothing of it is used")
	errOtherHolds = errors.New("another cluster answers; its Secrets are not read")
)

func (f *remoteReader) run(ctx context.Context) {
	pauses := retry.Backoff{First: remotePause, Longest: remoteLongest}
	for ctx.Err() == nil {
		began := time.Now()
		err := f.attempt(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil, time.Since(began) > remoteRenew/2:
			pauses.Reset()
		}
		if err == nil {
			continue
		}
		d := kube.Diagnose(err)
		if why := f.reason(err, d); why != "" {
			f.complain(why, d.Trouble == kube.TroubleForbidden)
		}
		pause := pauses.Next()
		if d.Definite {
			pause = remoteLongest
		}
		f.rest(ctx, pause)
	}
}

// rest waits, at most until the cluster, which was in trouble, is READY again.
func (f *remoteReader) rest(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for first, trouble := true, false; ; first = false {
		s := f.o.Snapshots.Latest()
		c, shown := s.Cluster(f.holder)
		ready := shown && c.Status.Phase == federation.Ready
		switch {
		case first:
			trouble = !ready
		case trouble && ready:
			return
		}
		select {
		case <-s.Superseded():
		case <-ctx.Done():
			return
		}
	}
}

func (f *remoteReader) reason(err error, d kube.Diagnosis) string {
	switch {
	case errors.Is(err, errEndsAtOnce):
		return "" // what was read stays, and is read again
	case errors.Is(err, errOtherHolds), errors.Is(err, errEndless):
		return err.Error()
	case d.Trouble == kube.TroubleForbidden:
		return fmt.Sprintf("the hub may not read the Secrets that name clusters: grant it the verbs list and watch on secrets in the namespace %s, as deploy/kubernetes/remote-secrets.yaml does", f.o.Namespace)
	}
	return "the Secrets that name clusters cannot be read: " + d.Message
}

// attempt lists and watches until the watch ends, and returns nil when that was
// in the usual way.
func (f *remoteReader) attempt(ctx context.Context) error {
	if err := f.prove(ctx); err != nil {
		return err
	}
	found, version, err := f.list(ctx)
	if err == nil && lacks(found, f.known) && retry.Sleep(ctx, secondLook) {
		found, version, err = f.list(ctx)
	}
	if err == nil {
		err = f.prove(ctx)
	}
	if err != nil {
		return err
	}
	f.known = found
	f.say()
	return f.watch(ctx, version)
}

// prove tells whether the cluster that answers is the one that is known under the
// ID (S47, F47).
func (f *remoteReader) prove(ctx context.Context) error {
	uid, err := f.expected(ctx)
	if err != nil {
		return err
	}
	list, err := f.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + metav1.NamespaceSystem, Limit: 1})
	switch {
	case err != nil:
		return err
	case len(list.Items) != 1 || string(list.Items[0].UID) != uid:
		return errOtherHolds
	}
	return nil
}

// expected waits until it is known who the cluster is.
func (f *remoteReader) expected(ctx context.Context) (uid string, err error) {
	for {
		s := f.o.Snapshots.Latest()
		if c, shown := s.Cluster(f.holder); shown && c.Identity.UID != "" {
			return c.Identity.UID, nil
		}
		select {
		case <-s.Superseded():
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (f *remoteReader) list(ctx context.Context) (found map[string]map[string]kube.Secret, version string, err error) {
	found = map[string]map[string]kube.Secret{}
	options := metav1.ListOptions{LabelSelector: RemoteLabel, Limit: remotePage}
	tokens, bytes := map[string]bool{}, 0
	for {
		page, err := f.client.CoreV1().Secrets(f.o.Namespace).List(ctx, options)
		if err != nil {
			return nil, "", err
		}
		for i := range page.Items {
			found[page.Items[i].Name] = dataOf(&page.Items[i])
			bytes += page.Items[i].Size()
		}
		options.Continue = page.Continue
		switch {
		case options.Continue == "":
			return found, page.ResourceVersion, nil
		case tokens[options.Continue], len(tokens) >= maxRemotePages, bytes > maxRemoteBytes:
			return nil, "", errEndless
		}
		tokens[options.Continue] = true
	}
}

func dataOf(s *corev1.Secret) map[string]kube.Secret {
	data := make(map[string]kube.Secret, len(s.Data))
	for key, value := range s.Data {
		data[key] = kube.NewSecret(string(value))
	}
	return data
}

// lacks tells whether a Secret of before, or an ID in it, is not among those found.
func lacks(found, before map[string]map[string]kube.Secret) bool {
	for name, data := range before {
		for key := range data {
			if _, there := found[name][key]; !there {
				return true
			}
		}
	}
	return false
}

func (f *remoteReader) watch(ctx context.Context, version string) error {
	life := int64((remoteRenew*6/10 + rand.N(remoteRenew*4/10)).Seconds())
	w, err := f.client.CoreV1().Secrets(f.o.Namespace).Watch(ctx, metav1.ListOptions{
		LabelSelector: RemoteLabel, ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &life,
	})
	if err != nil {
		return err
	}
	defer func() {
		w.Stop()
		for range w.ResultChan() { // until its goroutine is gone
		}
	}()
	if err := f.prove(ctx); err != nil {
		return err
	}
	began := time.Now()
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			return nil // listed again
		}
		f.hear(e)
	}
	if time.Since(began) < time.Second && ctx.Err() == nil {
		return errEndsAtOnce
	}
	return nil
}

func (f *remoteReader) hear(e watch.Event) {
	secret, ok := e.Object.(*corev1.Secret)
	switch {
	case !ok:
		return
	case e.Type == watch.Deleted:
		delete(f.known, secret.Name)
	case e.Type == watch.Added, e.Type == watch.Modified:
		f.known[secret.Name] = dataOf(secret)
	default:
		return // a bookmark
	}
	f.say()
}
