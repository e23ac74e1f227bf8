package listwatch

import (
	"context"
	"crypto/sha256"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"isthmus.dev/isthmus/federation"
)

// listAll returns the complete list and its version. Where the version of the
// first page expires underway, one request reads the list whole.
func (r *reflector[T]) listAll(ctx context.Context) ([]T, string, error) {
	var items []T
	r.share.unlist()
	options := metav1.ListOptions{Limit: r.PageSize, LabelSelector: r.Labels, FieldSelector: r.Fields}
	count := pages{limit: r.share.of.limits.Pages}
	for {
		page, next, version, err := r.listPage(ctx, options)
		if expired(err) && options.Continue != "" {
			r.share.unlist()
			items, options.Continue, options.Limit = nil, "", 0
			continue
		}
		if err != nil {
			return nil, "", err
		}
		items = append(items, page...)
		r.share.of.Show()
		if next == "" {
			return items, version, nil
		}
		if err := count.next(next); err != nil {
			return nil, "", err
		}
		options.Continue = next
	}
}

func (r *reflector[T]) listPage(ctx context.Context, options metav1.ListOptions) (items []T, next, version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := r.List(ctx, options)
	if err != nil {
		return nil, "", "", err
	}
	about, err := meta.ListAccessor(list)
	if err != nil {
		return nil, "", "", fmt.Errorf("reading a list: %w", err)
	}
	if about.GetResourceVersion() == "" {
		return nil, "", "", ownError("the server sent a list without a version")
	}
	err = meta.EachListItem(list, func(in runtime.Object) error {
		value, err := r.read(in)
		if err != nil {
			return err
		}
		items = append(items, value)
		return r.share.list(r.Size(value))
	})
	return items, about.GetContinue(), about.GetResourceVersion(), err
}

// pages counts the pages of one list.
type pages struct {
	limit int
	seen  map[[sha256.Size]byte]bool
}

// next takes the continue token of a page. A token that was there before would
// lead round in a circle.
func (p *pages) next(token string) error {
	if p.seen == nil {
		p.seen = map[[sha256.Size]byte]bool{}
	}
	id := sha256.Sum256([]byte(token))
	switch {
	case p.seen[id]:
		return errRepeats
	case len(p.seen) >= p.limit:
		return federation.LimitError{Limit: "pages", Most: int64(p.limit)}
	}
	p.seen[id] = true
	return nil
}
