// Package mcp makes the resources that the hub serves over the Mesh Configuration Protocol
// to other control planes: its configuration, and the services of its clusters as
// ServiceEntries (ADR 128). What came from another control plane is not among them, so that
// nothing comes back as an echo.
package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"
	mcpapi "istio.io/api/mcp/v1alpha1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/mcp"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/federation/derive"
	"isthmus.dev/isthmus/internal/btree"
)

// Options are what a Table is made from. All are required.
type Options struct {
	Snapshots interface{ Latest() *federation.Snapshot }
	// Views are the configuration that snapshots show already.
	Views  interface{ LatestPublished() *config.View }
	Kinds  []schema.Kind // that the hub knows
	Origin string        // of this hub, for mcp.OriginAnnotation
	Logger *slog.Logger
}

// Resource is one object. It is never changed.
type Resource struct {
	Name    string // NAMESPACE/NAME
	Version string // the same for the same content, on every hub of the store
	Any     []byte // a google.protobuf.Any with the mcp.v1alpha1.Resource
}

// Table has the resources of all kinds, as the latest snapshot has them. Its methods may be
// called by many goroutines.
type Table struct {
	o     Options
	kinds map[string]federation.Kind // by type URL, in each version that is served

	mu      sync.Mutex
	version uint64 // of the snapshot; 0: nothing was made yet
	made    map[federation.Kind]btree.Map[*Resource]
	read    map[federation.ObjectKey]federation.Deps // of the objects that are served or may be
	index   *derive.Index[federation.ObjectKey]
}

// New makes a table. It makes resources when it is first asked.
func New(o Options) *Table {
	t := &Table{
		o: o, kinds: map[string]federation.Kind{}, made: map[federation.Kind]btree.Map[*Resource]{},
		read: map[federation.ObjectKey]federation.Deps{}, index: derive.NewIndex[federation.ObjectKey](),
	}
	for _, k := range mcp.Kinds(o.Kinds) {
		for _, version := range k.Versions {
			t.kinds[k.Group+"/"+version+"/"+k.Name] = k.Kind
		}
	}
	return t
}

// Of returns the resources of a type by name; false: the hub does not know the type.
// It costs what changed since it was asked last.
func (t *Table) Of(url string) (btree.Map[*Resource], bool) {
	k, known := t.kinds[url]
	if !known {
		return btree.Map[*Resource]{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.follow()
	return t.made[k], true
}

// follow makes again what changed; the caller holds mu.
func (t *Table) follow() {
	s := t.o.Snapshots.Latest()
	if s.Version() <= t.version && t.version > 0 {
		return
	}
	changes, view := s.ChangesSince(t.version), t.o.Views.LatestPublished()
	if changes.All {
		clear(t.made)
		clear(t.read)
		t.index = derive.NewIndex[federation.ObjectKey]()
		for o := range view.State.Objects() {
			t.object(s, view, o.Key)
		}
		for service := range s.Services().All() {
			t.service(s, service.Key)
		}
	}
	for _, o := range changes.Objects {
		t.object(s, view, o.Key)
	}
	for _, key := range t.index.Affected(changes, s) {
		t.object(s, view, key)
	}
	for _, c := range changes.Services {
		t.service(s, c.Key)
	}
	t.version = s.Version()
}

// object makes the resource of a configuration object again.
func (t *Table) object(s *federation.Snapshot, view *config.View, key federation.ObjectKey) {
	if !strings.HasSuffix(key.Group, ".istio.io") || key.Cluster != "" {
		return
	}
	var made *Resource
	var now federation.Deps
	if o, exists := view.State.Object(key); exists {
		r := s.Read()
		if !fromServer(r, view, key) {
			made = t.contained(key.Title(), func() (*Resource, error) { return t.ofObject(o) })
		}
		now = r.Deps()
	}
	t.note(key, now)
	t.set(key.Of(), key.Namespace+"/"+key.Name, made)
}

// note notes what the resource of an object was made from.
func (t *Table) note(key federation.ObjectKey, now federation.Deps) {
	t.index.Replace(key, t.read[key], now)
	delete(t.read, key)
	if now.Problems.Len() > 0 {
		t.read[key] = now
	}
}

// fromServer reports whether the object came from another control plane. Another source counts
// only after one more has the object, or one less, which the problem that it is hidden tells: the
// object itself may be the same.
func fromServer(r *federation.Reader, view *config.View, key federation.ObjectKey) bool {
	federation.ReadProblems(r, federation.ProblemSubject{Cluster: view.State.Source().Cluster, Object: key.Title()})
	source, _ := view.SourceOf(key)
	return strings.HasPrefix(source, mcp.Server{}.Source())
}

// service makes the ServiceEntry of a service again.
func (t *Table) service(s *federation.Snapshot, key federation.ServiceKey) {
	name := t.nameOf(key)
	var made *Resource
	if service, exists := s.Service(key); exists {
		if entry := entryOf(service); entry != nil {
			made = t.contained(key.Title(), func() (*Resource, error) {
				return pack(&mcpapi.Metadata{Name: name, Annotations: map[string]string{mcp.OriginAnnotation: t.o.Origin}}, entry)
			})
		}
	}
	t.set(federation.ServiceEntryKind, name, made)
}

// shownOrigin is how much of the hub's origin the names of entries have: hubs that
// read each other need different ones.
const shownOrigin = 8

func (t *Table) nameOf(key federation.ServiceKey) string {
	namespace := key.Namespace
	if namespace == "" {
		namespace = federation.DefaultRootNamespace
	}
	origin := strings.ToLower(t.o.Origin)
	return namespace + "/isthmus-" + origin[:min(len(origin), shownOrigin)] + "." + strings.TrimPrefix(string(key.Hostname), "*.")
}

// contained makes a resource. What cannot be made is excluded, and does no harm to others.
func (t *Table) contained(title string, build func() (*Resource, error)) (made *Resource) {
	defer func() {
		if cause := recover(); cause != nil {
			made = nil
			t.o.Logger.Error("leaving an object out of what is served to control planes: the hub panicked over it",
				slog.String("object", title), slog.Any("panic", cause))
		}
	}()
	made, err := build()
	if err != nil {
		t.o.Logger.Warn("leaving an object out of what is served to control planes", slog.String("object", title), slog.Any("err", err))
		return nil
	}
	return made
}

func (t *Table) set(k federation.Kind, name string, made *Resource) {
	txn := t.made[k].Txn()
	if made == nil {
		txn.Delete(name)
	} else if old, had := txn.Get(name); !had || old.Version != made.Version {
		txn.Set(name, made)
	}
	t.made[k] = txn.Commit()
}

// document is what of a manifest is served.
type document struct {
	Metadata struct {
		Labels            map[string]string `json:"labels"`
		Annotations       map[string]string `json:"annotations"`
		CreationTimestamp *timestamp        `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

func (t *Table) ofObject(o *config.Object) (*Resource, error) {
	var d document
	if err := json.Unmarshal(o.Manifest, &d); err != nil {
		return nil, err
	}
	spec, err := kind.Decode(o.Key.Of(), d.Spec)
	if err != nil {
		return nil, err
	}
	body, is := spec.(proto.Message)
	if !is {
		return nil, fmt.Errorf("a %s has no protobuf message", o.Key.Kind)
	}
	annotations := map[string]string{mcp.OriginAnnotation: t.o.Origin}
	for k, v := range d.Metadata.Annotations {
		if k != mcp.OriginAnnotation && k != "kubectl.kubernetes.io/last-applied-configuration" {
			annotations[k] = v
		}
	}
	m := &mcpapi.Metadata{Name: o.Key.Namespace + "/" + o.Key.Name, Labels: d.Metadata.Labels, Annotations: annotations}
	if at := d.Metadata.CreationTimestamp; at != nil {
		m.CreateTime = timestamppb.New(at.Time)
	}
	return pack(m, body)
}

// pack makes the resource. Its version is that of its content, and not a number: those of
// several sources have no order.
func pack(m *mcpapi.Metadata, body proto.Message) (*Resource, error) {
	inner, err := anyOf(body)
	if err != nil {
		return nil, err
	}
	resource := &mcpapi.Resource{Metadata: m, Body: inner}
	unversioned, err := proto.MarshalOptions{Deterministic: true}.Marshal(resource)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(unversioned)
	m.Version = "v" + hex.EncodeToString(sum[:8])
	outer, err := anyOf(resource)
	if err != nil {
		return nil, err
	}
	data, err := proto.Marshal(outer)
	return &Resource{Name: m.Name, Version: m.Version, Any: data}, err
}

func anyOf(m proto.Message) (*anypb.Any, error) {
	a := &anypb.Any{}
	return a, anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true})
}
