package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/session"
)

// What "isthmus wait" waits for.
const (
	forAcked     = "acked"
	forDelivered = "delivered"
	forDeleted   = "deleted"
)

// objectLook is how often objects are looked at while something is waited for.
const objectLook = 300 * time.Millisecond

// objectWait are objects that are waited for. One that is done is not looked at
// any more.
type objectWait struct {
	until string
	left  []client.Ref
	all   int
	mayGo bool // an object that is gone is done, too
}

// awaitObjects returns when all objects are done, one cannot be any more, or the
// context ends.
func awaitObjects(ctx context.Context, s *session.Session, w *objectWait) error {
	p := newProgress(s)
	defer p.done()
	again := time.NewTicker(objectLook)
	defer again.Stop()
	for {
		told, err := w.poll(ctx, s)
		switch {
		case ctx.Err() != nil:
			return p.late(ctx)
		case client.Passes(err):
			p.print(err.Error() + "; trying again")
		case err != nil:
			return err
		case len(w.left) == 0:
			return p.last(told)
		default:
			p.print(told)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return p.late(ctx)
		}
	}
}

// late is that the time is over, or that the wait was interrupted before.
func (p *progress) late(ctx context.Context) error {
	told := p.told
	if told == "" {
		told = "the hub has not answered"
	}
	p.done()
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return fmt.Errorf("interrupted (%s); run the command again to continue to wait", told)
	}
	return fmt.Errorf("timed out after %s (%s); wait longer with --timeout, or look with \"isthmus describe\" and \"isthmus get proxies\"",
		p.timeout, told)
}

// poll asks for the objects that are left and returns their progress. An error means
// that waiting is pointless, or that the hub did not answer.
func (w *objectWait) poll(ctx context.Context, s *session.Session) (told string, err error) {
	var left []client.Ref
	var waiting, done string
	for _, of := range w.left {
		answer, err := client.Object(ctx, s, of.Group, of.Kind, &of.Namespace, of.Name, of.ClusterID, nil)
		if err != nil {
			return "", err
		}
		text, ready, err := w.progress(of, answer.ConfigObject)
		switch {
		case err != nil:
			return "", err
		case ready:
			done = text
		default:
			left = append(left, of)
			if waiting == "" {
				waiting = text
			}
		}
	}
	w.left = left
	switch {
	case len(left) == 0 && w.all == 1:
		return done, nil
	case len(left) == 0:
		return fmt.Sprintf("all %d objects are done", w.all), nil
	case w.all == 1:
		return waiting, nil
	}
	return fmt.Sprintf("%d of %d objects are done; %s", w.all-len(left), w.all, waiting), nil
}

// progress says what an object has reached, and whether that is enough; nil: there
// is no such object.
func (w *objectWait) progress(of client.Ref, o *client.ObjectSummary) (text string, ready bool, err error) {
	name := output.RefTitle(of)
	switch {
	case o == nil && (w.until == forDeleted || w.mayGo):
		return name + " does not exist", true, nil
	case o == nil:
		return "", false, fmt.Errorf("%s does not exist; name its namespace with -n, or list the objects with \"isthmus get\"", name)
	case w.until == forDeleted:
		return name + " still exists", false, nil
	case o.Status.Pending == nil && w.mayGo: // of the objects of a revision, those that are counted decide
		return name + ": proxies are not counted for this object", true, nil
	case o.Status.Pending == nil || o.Status.Delivered == nil:
		return "", false, fmt.Errorf("proxies are not counted for %s; wait when you change it, with \"isthmus apply --wait\"", name)
	}
	acked, refused := *o.Status.Acked, *o.Status.Rejected
	all := acked + refused + *o.Status.Pending
	switch {
	case all == 0:
		return name + ": no connected proxy is affected", true, nil
	case w.until == forDelivered:
		return fmt.Sprintf("%s: sent to %d of %d proxies", name, *o.Status.Delivered, all), *o.Status.Delivered == all, nil
	case refused > 0:
		return "", false, fmt.Errorf("%s: %d of %d proxies rejected it; \"isthmus describe %s\" shows their messages",
			name, refused, all, strings.TrimSpace(of.Kind+" "+of.Name+namespaceFlag(of.Namespace)))
	}
	return fmt.Sprintf("%s: accepted by %d of %d proxies", name, acked, all), acked == all, nil
}

func namespaceFlag(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}
