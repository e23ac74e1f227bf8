// Package apply changes the mesh's configuration: it reads manifests, merges
// them into what is stored as Kubernetes' server-side apply does, validates,
// shows what would differ, and commits the set as one revision or not at all.
package apply

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/federation/config/manifest"
	"isthmus.dev/isthmus/federation/config/schema"
)

// Request is a set of manifests to apply.
type Request struct {
	Manifests []File
	Namespace string // of manifests that name none; empty: default
	DryRun    bool
	// CompareResourceVersion refuses a manifest whose metadata.resourceVersion is
	// not the revision of the stored object. Otherwise the field is ignored: what
	// another API server wrote there says nothing here.
	CompareResourceVersion bool
	Manager                string // field manager; empty: DefaultManager
	Force                  bool   // take over fields that other managers own
	// Set names the manifests as a whole: each object gets the label SetLabel. With
	// Prune, stored objects of the set that are not among the manifests go.
	Set   string
	Prune bool
	// ExpectedRevision refuses the request unless the configuration is at this
	// revision, and ExpectedRevisions unless the object is; 0 there means that it
	// must not exist. Nil: not checked.
	ExpectedRevision  *int64
	ExpectedRevisions map[federation.ObjectKey]int64
	Credentials       []Credentials
	Origin
}

// File is one input with the name by which problems call it.
type File struct {
	Name string
	Data string
}

// Origin says who makes a change and why.
type Origin struct {
	Author  string
	Message string
	Ticket  string
	// IdempotencyKey makes a repetition change nothing and have the same result.
	// Another request with a key that is in the history is refused. A request that
	// changed nothing is not remembered, and a dry run does not look at the key.
	IdempotencyKey string
	manager        string
	digest         string // of the request
	expects        int64  // the newest revision that the request was computed from
}

// Deletion is a set of objects to delete.
type Deletion struct {
	Objects          []federation.ObjectKey
	DryRun           bool
	ExpectedRevision *int64
	Origin
}

// Rollback is a revision to return to, as one new revision.
type Rollback struct {
	To     int64
	DryRun bool
	Origin
}

// Result is the result of a request. With Errors nothing was changed.
type Result struct {
	DryRun   bool
	Revision int64 // of the configuration afterwards; that of the base in a dry run
	Changes  []Change
	Findings []Finding
	Errors   []Error
	// Before and After are the snapshots without and with the change, of a dry run
	// only: readers compute from them what would happen.
	Before, After *federation.Snapshot
}

// Change is what a request does to one object.
type Change struct {
	Key    federation.ObjectKey
	Action config.Action
	Before *config.Object // nil: there was none, it cannot be read, or it is not known any more
	Object *config.Object // as it is afterwards; nil: deleted
	// said is what the rules of its kind say about the spec; nil: they were not asked.
	said *[]schema.Problem
}

// Diff shows what differs as a unified diff of YAML without managed fields;
// empty where nothing does or where it is not known what was before.
func (c Change) Diff() string {
	if c.Before == c.Object || c.Before == nil && c.Action != config.Created {
		return ""
	}
	before, err := decode(c.Before)
	if err != nil {
		before = nil // shown as if it had not been there
	}
	after, err := decode(c.Object)
	if err != nil {
		return "" // cannot be: it was written here or is in force
	}
	return schema.Diff(before, after)
}

// Finding is something that does not keep a request from being carried out.
type Finding = analysis.Finding

// Severity says how much a finding matters.
type Severity = analysis.Severity

// The severities.
const (
	Refusal = analysis.Refusal
	Warning = analysis.Warning
	Info    = analysis.Info
)

// Error is why a request is refused.
type Error struct {
	Code    Code
	Message string // what is wrong and what to do
	Field   string // path within the object
	Key     federation.ObjectKey
	Place   Place
	// Manager is who owns the field, of a CONFLICT.
	Manager string
}

// Place is where in the input something stands; zero where that is unknown.
type Place struct {
	File         string
	Document     int // from 1
	Line, Column int // from 1
}

// Code is a stable code of an Error. The codes of manifest and schema are used
// as they are.
type Code string

// The codes that only this package gives.
const (
	Conflict           Code = "CONFLICT"            // another manager owns the field
	PreconditionFailed Code = "PRECONDITION_FAILED" // not at the expected revision
	NotFound           Code = "NOT_FOUND"
	DuplicateObject    Code = "DUPLICATE_OBJECT" // twice in one set
	ReadOnly           Code = "READ_ONLY"        // the object comes from a source that is not written to
	Protected          Code = "PROTECTED"        // may not be pruned
	NothingToDo        Code = "NOTHING_TO_DO"
	TooManyDocuments        = Code(manifest.TooManyDocuments)
	StorageFull        Code = "STORAGE_FULL"
	StorageNotWritable Code = "STORAGE_NOT_WRITABLE"
	StoreRefused       Code = "STORE_REFUSED"
	Unavailable        Code = "UNAVAILABLE" // the store does not answer; repeat later
	Busy               Code = "BUSY"        // others keep changing the configuration; repeat
	UnknownRevision    Code = "UNKNOWN_REVISION"
	InvalidRequest     Code = "INVALID_REQUEST"
	KeyReused          Code = "IDEMPOTENCY_KEY_REUSED" // by another request
)

// DefaultManager is the field manager of requests that name none.
const DefaultManager = "isthmus"

// The metadata by which sets of manifests are known.
const (
	SetLabel        = "isthmus.dev/set"
	PruneAnnotation = "isthmus.dev/prune" // "false" protects the object from pruning
)
