package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
)

const (
	codeUndecodable = "UNDECODABLE" // an object that is set aside as a whole
	codeFault       = federation.CodeHubFault
	codeMeshOnly    = "MESH_ONLY" // an object for one cluster of a kind that concerns all proxies
)

// held is an object as the State has it: decoded once and never changed. What a
// ServiceEntry or WorkloadEntry was decoded to is not kept beside what it means.
type held struct {
	object *Object
	shown  *federation.Object // as readers of a snapshot see it; nil when it is set aside
	kind.Meaning
}

// document is what the hub reads of a manifest.
type document struct {
	Metadata struct {
		Labels            map[string]string `json:"labels"`
		CreationTimestamp *time.Time        `json:"creationTimestamp"`
		Annotations       struct {
			DryRun string `json:"istio.io/dry-run"`
		} `json:"annotations"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

// holdContained is hold. An object over which the hub panics is set aside as one that
// cannot be decoded (R12): it would be there after every start.
func (s *State) holdContained(o *Object, labels *labelSets) (h *held) {
	defer func() {
		if cause := recover(); cause != nil {
			s.options.fault(o.Key, cause)
			h = &held{object: o, Meaning: kind.Meaning{Problems: []federation.Problem{fault(o.Key, cause)}}}
		}
	}()
	if s.options.Poison != nil {
		s.options.Poison(o.Key)
	}
	return hold(o, s.options.Domain, labels)
}

func fault(key federation.ObjectKey, cause any) federation.Problem {
	return federation.Problem{
		Code: codeFault, Object: title(key),
		Message: fmt.Sprintf("the hub cannot process this object, which is a fault of the hub: the object has no effect; report it with the stack in the hub's log (%.200v)", cause),
	}
}

func (o Options) log() *slog.Logger { return cmp.Or(o.Logger, slog.Default()) }

// fault tells of a panic over an object.
func (o Options) fault(key federation.ObjectKey, cause any) {
	o.log().Error("setting an object aside: the hub panicked over it", slog.String("object", title(key)), slog.Any("panic", cause),
		slog.String("stack", string(debug.Stack())))
}

// hold decodes an object. One that cannot be decoded is set aside with a
// problem.
func hold(o *Object, domain string, labels *labelSets) *held {
	h := &held{object: o}
	if of := o.Key.Cluster; of != "" && !kind.ConcernsProxies(o.Key.Of()) {
		h.Problems = []federation.Problem{{
			Code: codeMeshOnly, Object: title(o.Key),
			Message: fmt.Sprintf("a %s concerns all proxies and cannot be for those of cluster %s alone; the object has no effect: give its source the scope MESH", o.Key.Kind, of),
		}}
		return h
	}
	shown, err := decode(o)
	if err != nil {
		h.Problems = []federation.Problem{{
			Code: codeUndecodable, Object: title(o.Key), Message: fmt.Sprintf("%v; the object is set aside: apply it again", err),
		}}
		return h
	}
	shown.Labels = labels.shared(shown.Labels)
	d := kind.Decoded{Object: shown, Manifest: o.Manifest, Domain: domain, Share: labels.shared}
	kind.Index(d)
	h.Meaning = kind.Translate(d)
	if h.WithoutSpec {
		shown.Spec, shown.Decode = nil, specOf(o)
	}
	if !h.Hidden {
		h.shown = shown
	}
	return h
}

// documentOf is what the hub reads of an object, and its spec if that was decoded already.
func documentOf(o *Object) (d document, spec any, err error) {
	if before := o.read.take(); before != nil && before.held == nil {
		d.Spec, spec = before.spec, before.decoded
		err = json.Unmarshal(before.metadata, &d.Metadata)
	} else {
		err = json.Unmarshal(o.Manifest, &d)
	}
	if err != nil {
		return d, nil, fmt.Errorf("its manifest cannot be read: %w", err)
	}
	return d, spec, nil
}

func title(key federation.ObjectKey) string { return key.Title() }

func decode(o *Object) (*federation.Object, error) {
	if hasNUL(o.Manifest) {
		return nil, errNUL
	}
	d, spec, err := documentOf(o)
	if err == nil && spec == nil {
		spec, err = kind.Decode(o.Key.Of(), d.Spec)
	}
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(d.Spec)
	shown := &federation.Object{
		Key: o.Key, Revision: o.Revision, Digest: hex.EncodeToString(digest[:16]), Labels: d.Metadata.Labels,
		Spec: spec, Credentials: o.Credentials, Origin: o.Origin,
	}
	shown.DryRun, _ = strconv.ParseBool(d.Metadata.Annotations.DryRun) // what is neither is in force
	if d.Metadata.CreationTimestamp != nil {
		shown.Created = d.Metadata.CreationTimestamp.UTC()
	}
	return shown, nil
}

// at is what was decoded from the same bytes, for an object that is stored again.
func (h *held) at(o *Object) *held {
	same := *h
	same.object = o
	if h.shown != nil && h.shown.Revision != o.Revision {
		shown := *h.shown
		shown.Revision = o.Revision
		if shown.Decode != nil {
			shown.Decode = specOf(o) // not of the object that is replaced
		}
		same.shown = &shown
		if h.Binding != nil {
			bound := *h.Binding
			bound.Object = same.shown
			same.Binding = &bound
		}
	}
	return &same
}

// specOf decodes an object again, for the rare reader of a spec that is not kept.
func specOf(o *Object) func() any {
	return func() any {
		again, err := decode(o)
		if err != nil {
			return nil // cannot be: it was decoded before
		}
		return again.Spec
	}
}

// withSpec is the object with its spec, decoded again where it was not kept.
func (h *held) withSpec() *federation.Object {
	if h.shown.Decode == nil {
		return h.shown
	}
	shown := *h.shown
	shown.Spec, shown.Decode = h.shown.Decode(), nil
	return &shown
}
