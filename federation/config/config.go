// Package config is the mesh's declarative configuration: where objects come
// from, how they are validated and applied, and what they mean to the mesh. A
// source gives whole objects; translation into an Edit is pure.
package config

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"isthmus.dev/isthmus/federation"
)

// Object is one stored object. It is read-only.
type Object struct {
	Key        federation.ObjectKey
	APIVersion string // in which Manifest is written: the kind's storage version
	Revision   int64  // of the source, when the object last changed
	// Manifest is the whole object as JSON with sorted keys, its metadata with
	// managedFields included; times apart, equal objects have equal bytes.
	Manifest []byte
	Expires  time.Time // when it goes unless it is renewed; zero: never
	// Credentials are a grant of the source, never of the manifest.
	Credentials federation.CredentialGrant
	// Origin is what the source derived the object from, never of the manifest.
	Origin federation.Origin

	read *read // what was read before it was written; nil: nothing
}

// Alike reports whether the objects mean the same, whatever their keys and revisions.
func (o *Object) Alike(p *Object) bool {
	return bytes.Equal(o.Manifest, p.Manifest) && o.Credentials == p.Credentials && o.Origin.Equal(p.Origin)
}

// Event is a change of one object. Old is nil for a new one, New for one that
// is gone.
type Event struct{ Old, New *Object }

// Key is that of the object.
func (e Event) Key() federation.ObjectKey {
	if e.New != nil {
		return e.New.Key
	}
	return e.Old.Key
}

// Compare orders events by key.
func (e Event) Compare(o Event) int { return e.Key().Compare(o.Key()) }

// Update is one change of a source, to be taken as a whole.
type Update struct {
	Revision int64 // of the source after the change
	Full     bool  // Events have every object of the source, Old empty: what is missing is gone
	Events   []Event
}

// Source is a place from which objects come (ConfigStoreCache of seeds 1.11).
type Source interface {
	// Kinds are those that the source can give; it is never asked for others
	// (seed 32).
	Kinds() []federation.Kind
	// Run follows the source until the context ends. The first Update is full.
	// Trouble that may pass is reported by Trouble, and what was given stays.
	Run(ctx context.Context, to Sink) error
}

// Sink takes what a source gives, in order. Its methods block until it is
// applied.
type Sink interface {
	Update(Update)
	// Trouble is what is wrong with the source or some of what it holds; empty:
	// nothing any more. Each call replaces the one before.
	Trouble([]Problem)
}

// Problem is something that a source holds and that is not used.
type Problem struct {
	Code    string // stable, upper case, such as UNDECODABLE
	Object  string // what it is about: a key, a file, or "" for the whole source
	Field   string // path within the object
	Message string // what is wrong and what to do; never a secret
}

// Compare orders problems by object, field, code and message.
func (p Problem) Compare(o Problem) int {
	return cmp.Or(cmp.Compare(p.Object, o.Object), cmp.Compare(p.Field, o.Field), cmp.Compare(p.Code, o.Code),
		cmp.Compare(p.Message, o.Message))
}

// shownProblems is how many problems of the clusters a source tells.
const shownProblems = 100

// Shown are the first of the problems that a source has with clusters, and how many more
// there are. The object names what it reads.
func Shown(all []Problem, object string) []Problem {
	if more := len(all) - shownProblems; more > 0 {
		all = append(all[:shownProblems], Problem{
			Code: federation.CodeMoreProblems, Object: object,
			Message: fmt.Sprintf("there are %d more problems", more),
		})
	}
	return all
}

// Change is one object of a commit.
type Change struct {
	Key    federation.ObjectKey
	Object *Object // nil: deleted
}

// Commit is a set of changes that becomes true as a whole or not at all.
type Commit struct {
	Base    int64 // revision from which the changes were computed
	Changes []Change
	Secrets []Secret // written in the same transaction
	Note
}

// Secret is what is kept beside an object and never in it: encrypted by who
// commits it, in no history and no Update. Replacing it leaves nothing of the one
// before.
type Secret struct {
	Of     federation.ObjectKey
	Sealed []byte // empty: there is none any more
}

// The limits of the Secrets of one commit.
const (
	MaxSecret  = 512 << 10 // bytes of one
	MaxSecrets = 64        // those that go included
)

// Note is what history records about a commit beside its changes.
type Note struct {
	Author         string
	Time           time.Time
	Message        string
	Manager        string // field manager
	Ticket         string
	IdempotencyKey string // empty: none
	// RequestDigest tells a repetition from another request with the same key;
	// empty: not known.
	RequestDigest string `json:",omitempty"`
}

// Record is a commit as history has it.
type Record struct {
	Revision int64
	Note
	Changes []RecordedChange
}

// Action says what a commit did to an object.
type Action string

// The actions.
const (
	Created   Action = "CREATE"
	Updated   Action = "UPDATE"
	Deleted   Action = "DELETE"
	Unchanged Action = "UNCHANGED"
)

// RecordedChange is one object of a record.
type RecordedChange struct {
	Key    federation.ObjectKey
	Action Action
	Object *Object // as it was from then on; nil: deleted, unchanged, or damaged in the store
}

// Log is the store of record: where commits go and history comes from. Its
// errors are a *Moved, a *Repeated, ErrUnknownRevision, a *Refused, or ErrUnavailable.
type Log interface {
	// Commit returns the new revision once it is durable. A commit without
	// changes is refused. One whose idempotency key is in the history already
	// changes nothing and gets a *Repeated. After ErrUnavailable it may be in force
	// or not: repeating it with its idempotency key is safe.
	Commit(ctx context.Context, c Commit) (revision int64, err error)
	// Records returns up to limit records below the revision before, newest first;
	// before 0 starts at the newest.
	Records(ctx context.Context, before int64, limit int) ([]Record, error)
	// History returns what was done to an object. Every object that was committed
	// has a step, however old that is. It does not wait for the store once the source
	// has given anything.
	History(ctx context.Context, key federation.ObjectKey) (ObjectHistory, error)
	// At returns every object as of the revision.
	At(ctx context.Context, revision int64) ([]Object, error)
	// Find returns the record of the commit with that idempotency key, or nil.
	Find(ctx context.Context, idempotencyKey string) (*Record, error)
}

// Secrets reads the secrets that commits stored beside objects. Its errors are
// ErrUnavailable, or report a damaged value; they contain nothing of it.
type Secrets interface {
	// Secret returns what is kept beside the object, encrypted as it was given, or
	// nil.
	Secret(ctx context.Context, of federation.ObjectKey) (sealed []byte, err error)
	// SecretsOf returns what has a secret, in the order of the keys.
	SecretsOf(ctx context.Context) ([]federation.ObjectKey, error)
	// Reseal replaces the secret with another encryption of it. It reports whether the
	// old one was still there.
	Reseal(ctx context.Context, old, fresh Secret) (bool, error)
}

// Leases keeps objects that are deleted unless they are renewed. They are given by the
// store's Source like others, with Expires.
type Leases interface {
	// Register stores the object until the TTL ends; one with that key is replaced.
	Register(ctx context.Context, o Object, ttl time.Duration) (expires time.Time, err error)
	// Renew restarts the object's TTL; ErrNoLease when it is gone.
	Renew(ctx context.Context, key federation.ObjectKey) (expires time.Time, err error)
	// Release removes the object now; without one it does nothing.
	Release(ctx context.Context, key federation.ObjectKey) error
}

// Moved is the error of a commit whose base is not the newest revision (any
// more): compute it again.
type Moved struct{ Base, Now int64 }

func (m *Moved) Error() string {
	return fmt.Sprintf("the configuration is at revision %d, not at %d any more: read it again and repeat", m.Now, m.Base)
}

// Repeated is the error of a commit whose idempotency key is in the history already,
// as that of the revision: nothing was changed.
type Repeated struct{ Revision int64 }

func (r *Repeated) Error() string {
	return fmt.Sprintf("a commit with this idempotency key became revision %d already", r.Revision)
}

// Refused is the error of a commit that the store will never take as it is.
type Refused struct {
	Limit   string // the rule, such as "storage full"
	Field   string // of the request; empty: none
	Message string
}

func (r *Refused) Error() string { return r.Limit + ": " + r.Message }

// The errors of a Log and of Leases.
var (
	ErrUnknownRevision = errors.New("this revision is not in the history (any more)")
	ErrNoLease         = errors.New("there is no such registration (any more): register again")
	ErrUnavailable     = errors.New("the configuration store does not answer: repeat later")
)
