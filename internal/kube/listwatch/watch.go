package listwatch

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"isthmus.dev/isthmus/federation"
)

func (r *reflector[T]) watchOptions(life time.Duration) metav1.ListOptions {
	seconds := int64(life.Seconds())
	return metav1.ListOptions{
		LabelSelector: r.Labels, FieldSelector: r.Fields,
		ResourceVersion: r.version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	}
}

// consume passes events on until the watch ends. An end after a while is usual.
func (r *reflector[T]) consume(ctx context.Context, w watch.Interface) error {
	began := time.Now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-w.ResultChan():
			if !ok {
				return r.ended(began, errEndsAtOnce)
			}
			err := r.event(ctx, e)
			switch {
			case expired(err):
				r.version = ""
				return nil
			case needsList(err):
				r.version = "" // what was not taken is missing, and would come again
				return AccessError{Verb: "watch", Resource: r.Name, Err: err}
			case err != nil:
				return r.ended(began, err)
			}
		}
	}
}

func (r *reflector[T]) ended(began time.Time, why error) error {
	if time.Since(began) < atOnce {
		return AccessError{Verb: "watch", Resource: r.Name, Err: why}
	}
	r.pauses.Reset()
	return nil
}

func (r *reflector[T]) event(ctx context.Context, e watch.Event) error {
	if e.Type == watch.Error {
		return apierrors.FromObject(e.Object)
	}
	about, err := meta.Accessor(e.Object)
	if err != nil {
		return fmt.Errorf("reading a watch event: %w", err)
	}
	switch e.Type {
	case watch.Added, watch.Modified:
		value, err := r.read(e.Object)
		if err != nil {
			return err
		}
		size := r.Size(value)
		if err := r.share.queue(size); err != nil {
			return err
		}
		if !r.to.Set(ctx, value) {
			r.share.unqueue(size)
			return ctx.Err()
		}
	case watch.Deleted:
		if !r.to.Deleted(ctx, Key{Namespace: about.GetNamespace(), Name: about.GetName()}) {
			return ctx.Err()
		}
	case watch.Bookmark:
	default:
		return ownError("the watch sent an event of type " + federation.Quote(string(e.Type)))
	}
	r.version = about.GetResourceVersion()
	return nil
}
