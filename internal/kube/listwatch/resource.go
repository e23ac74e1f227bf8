package listwatch

import (
	"cmp"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/flowcontrol"
)

// Key names an object.
type Key = types.NamespacedName

// Resource is how objects of one type are listed, watched and read. Of makes one. Fields
// from Labels on may be zero.
type Resource[T any] struct {
	Name  string // for messages
	List  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	Read  func(runtime.Object) (value T, ok bool) // keeps only what is used; false for another type
	Size  func(T) int64                           // about what a value takes in memory

	Labels, Fields string // selectors
	// Optional: a server that forbids it is read without.
	Optional bool
	PageSize int64         // of lists; 0: 500
	Renew    time.Duration // of a watch, at the latest; 0: 5 min
	// Reconcile: when a watch is renewed everything is listed again, to find events that
	// never came (F46).
	Reconcile bool
	Tries     flowcontrol.RateLimiter // of all lists and watches that share it; nil: no limit but the pauses
	// Fault makes a placeholder for an object over which Read panicked. Nil: a list or an
	// event with such an object is refused, and what was known stays.
	Fault func(k Key, cause any, stack []byte) T
	// Doubtful reports whether a list lacks so much that it counts only when a second one,
	// some seconds later, does not bring it back (F44); nil: every list counts.
	Doubtful func([]T) bool
}

// typedClient is what every typed client of client-go can do.
type typedClient[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// Of is the resource that a typed client of client-go lists and watches. The name is for messages.
func Of[L, O runtime.Object, T any](name string, client typedClient[L], read func(O) T, size func(T) int64) Resource[T] {
	return Resource[T]{
		Name: name, Size: size, Watch: client.Watch,
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := client.List(ctx, o)
			if err != nil {
				return nil, err
			}
			return list, nil
		},
		Read: func(in runtime.Object) (value T, ok bool) {
			typed, ok := in.(O)
			if ok {
				value = read(typed)
			}
			return value, ok
		},
	}
}

func (r Resource[T]) withDefaults() Resource[T] {
	r.PageSize, r.Renew = cmp.Or(r.PageSize, 500), cmp.Or(r.Renew, 5*time.Minute)
	return r
}

// Named is the field selector of one object.
func Named(name string) string {
	return fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
}

// Sink takes what Follow reads. Where a method returns false, what it was given was not
// taken, because the context ended.
type Sink[T any] interface {
	// Listed is a complete list from the proven server. In another epoch than before,
	// versions of objects prove nothing: the server's history may have changed.
	Listed(ctx context.Context, items []T, epoch uint64) bool
	// Set is an object that was added or changed.
	Set(ctx context.Context, value T) bool
	// Deleted is an object that was deleted.
	Deleted(ctx context.Context, k Key) bool
	// Following reports that all changes come from now on (nil), or why they do not. What
	// was read before stays.
	Following(ctx context.Context, err error)
}
