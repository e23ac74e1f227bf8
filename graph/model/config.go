package model

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
)

// ConfigObject is a configuration object with the source that it comes from.
type ConfigObject struct {
	Of         *config.Object
	Source     ConfigSourceKind
	SourceName string
	HiddenIn   []string // the sources that have it, too
	Recorded   Recorded // nil: its revision is read alone

	metadata func() metadata
}

// metadata is what is read of an object's metadata.
type metadata struct {
	Labels  map[string]string `json:"labels"`
	Created time.Time         `json:"creationTimestamp"`
}

// NewConfigObject shows an object. Its manifest is read when that is asked for.
func NewConfigObject(of *config.Object) ConfigObject {
	return ConfigObject{Of: of, metadata: sync.OnceValue(func() metadata {
		var read struct{ Metadata metadata }
		_ = json.Unmarshal(of.Manifest, &read) // What cannot be read is shown without labels.
		return read.Metadata
	})}
}

// IsNode marks a configuration object as a Node of the schema.
func (ConfigObject) IsNode() {}

// ID makes the opaque ID.
func (o ConfigObject) ID() string { return ID(KindConfigObject, o.Key()) }

// Key orders objects by group, kind, namespace, name and cluster.
func (o ConfigObject) Key() string { return objectKey(o.Of.Key) }

func objectKey(k federation.ObjectKey) string {
	key := k.Group + nul + k.Kind + nul + k.Namespace + nul + k.Name
	if k.Cluster != "" {
		key += nul + string(k.Cluster)
	}
	return key
}

// ObjectKey reads what ConfigObject.Key writes; it is the zero key for other texts.
func ObjectKey(key string) federation.ObjectKey {
	parts := strings.Split(key, nul)
	if len(parts) < 4 || len(parts) > 5 {
		return federation.ObjectKey{}
	}
	found := federation.ObjectKey{Group: parts[0], Kind: parts[1], Namespace: parts[2], Name: parts[3]}
	if len(parts) == 5 {
		found.Cluster = federation.ClusterID(parts[4])
	}
	return found
}

// APIVersion is that in which the object is written.
func (o ConfigObject) APIVersion() string { return o.Of.APIVersion }

// Group is that of its kind.
func (o ConfigObject) Group() string { return o.Of.Key.Group }

// Kind is its kind.
func (o ConfigObject) Kind() string { return o.Of.Key.Kind }

// Namespace is "" where it has none.
func (o ConfigObject) Namespace() string { return o.Of.Key.Namespace }

// Name is its name.
func (o ConfigObject) Name() string { return o.Of.Key.Name }

// ClusterID is nil for an object for all proxies.
func (o ConfigObject) ClusterID() *string { return nonEmpty(string(o.Of.Key.Cluster)) }

// Revision is that of its source at which it last changed.
func (o ConfigObject) Revision() string { return Revision(o.Of.Revision) }

// HasLabel reports whether it has the label with that value.
func (o ConfigObject) HasLabel(key, value string) bool {
	if isPlain(value) && !bytes.Contains(o.Of.Manifest, []byte(value)) {
		return false // as nearly always: the manifest need not be read
	}
	has, ok := o.metadata().Labels[key]
	return ok && has == value
}

// isPlain reports whether JSON writes the text as it is.
func isPlain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\<>&`, r) })
}

// Labels are in the order of their keys.
func (o ConfigObject) Labels() []Label { return labels(o.metadata().Labels) }

// CreatedAt is nil where it is unknown.
func (o ConfigObject) CreatedAt() *time.Time { return known(o.metadata().Created) }

// ExpiresAt is nil for an object that stays.
func (o ConfigObject) ExpiresAt() *time.Time { return known(o.Of.Expires) }

// Set is that which it was applied with, nil for none.
func (o ConfigObject) Set() *string { return nonEmpty(o.metadata().Labels[apply.SetLabel]) }

// Revision writes a revision.
func Revision(revision int64) string { return strconv.FormatInt(revision, 10) }

// NewObjectRef names an object; revision 0 is none.
func NewObjectRef(key federation.ObjectKey, revision int64) ObjectRef {
	ref := ObjectRef{Group: key.Group, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, ClusterID: nonEmpty(string(key.Cluster))}
	if revision != 0 {
		text := Revision(revision)
		ref.Revision = &text
	}
	return ref
}
