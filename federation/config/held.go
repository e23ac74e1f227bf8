package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/external"
	networking "istio.io/api/networking/v1"
)

const (
	codeUndecodable = "UNDECODABLE" // an object that is set aside as a whole
	codeFault       = federation.CodeHubFault
	codeNotHonoured = "NOT_HONOURED" // a field that the hub does not act on
)

// held is an object as the State has it: decoded once and never changed. What a
// ServiceEntry or WorkloadEntry was decoded to is not kept beside what it means.
type held struct {
	object   *Object
	shown    *federation.Object // as readers of a snapshot see it; nil when it is set aside
	entry    *external.Reading
	key      federation.WorkloadKey
	workload *federation.Workload
	binding  *binding
	vips     []netip.Addr // of an Allocation
	problems []federation.Problem
}

// document is what the hub reads of a manifest.
type document struct {
	Metadata struct {
		Labels            map[string]string `json:"labels"`
		CreationTimestamp *time.Time        `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

// holdContained is hold. An object over which the hub panics is set aside as one that
// cannot be decoded (R12): it would be there after every start.
func (s *State) holdContained(o *Object, labels *labelSets) (h *held) {
	defer func() {
		if cause := recover(); cause != nil {
			s.options.fault(o.Key, cause)
			h = &held{object: o, problems: []federation.Problem{fault(o.Key, cause)}}
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
	o.log().Error("setting an object aside: the hub panicked over it", slog.String("object", title(key)), slog.Any("panic", cause), slog.String("stack", string(debug.Stack())))
}

// hold decodes an object. One that cannot be decoded is set aside with a
// problem.
func hold(o *Object, domain string, labels *labelSets) *held {
	h := &held{object: o}
	shown, err := decode(o)
	if err != nil {
		h.problems = []federation.Problem{{
			Code: codeUndecodable, Object: title(o.Key), Message: fmt.Sprintf("%v; the object is set aside: apply it anew", err),
		}}
		return h
	}
	h.shown = shown
	shown.Labels = labels.shared(shown.Labels)
	h.shown.Names, h.shown.ProxyLabels = names{shown.Key, domain}.of(shown.Spec), proxyLabels(shown.Spec)
	switch spec := shown.Spec.(type) {
	case *networking.ServiceEntry:
		for _, e := range spec.GetEndpoints() {
			if e != nil {
				e.Labels = labels.shared(e.GetLabels())
			}
		}
		h.entry, h.problems = external.Read(external.Entry{Key: o.Key, Created: shown.Created, Labels: shown.Labels, Spec: spec})
		shown.Spec, shown.Decode = nil, specOf(o)
	case *networking.WorkloadEntry:
		h.key, h.workload, h.problems = external.Workload(external.Instance{Key: o.Key, Labels: shown.Labels, Spec: spec})
		shown.Spec, shown.Decode = nil, specOf(o)
	case *networking.WorkloadGroup:
		if spec.GetProbe() != nil {
			h.problems = []federation.Problem{{
				Code: codeNotHonoured, Object: title(o.Key), Field: "spec.probe", Message: "the hub sends no probes to workloads that register themselves; the field has no effect",
			}}
		}
	case *federation.Allocation:
		h.vips, h.shown = spec.Addresses, nil
	case *federation.NetworkObject, *federation.MeshSettings:
		h.problems = unused(o)
	case *federation.ServiceBinding:
		h.binding, h.problems = readBinding(shown, spec, domain)
	}
	return h
}

func title(key federation.ObjectKey) string { return key.Title() }

func decode(o *Object) (*federation.Object, error) {
	if hasNUL(o.Manifest) {
		return nil, errNUL
	}
	var d document
	if err := json.Unmarshal(o.Manifest, &d); err != nil {
		return nil, fmt.Errorf("its manifest cannot be read: %w", err)
	}
	spec := newSpec(o.Key.Of())
	if spec == nil {
		return nil, fmt.Errorf("kind %s is none that this hub knows", o.Key.Of())
	}
	if err := decodeSpec(d.Spec, spec); err != nil {
		return nil, fmt.Errorf("its spec cannot be read: %w", err)
	}
	digest := sha256.Sum256(d.Spec)
	shown := &federation.Object{
		Key: o.Key, Revision: o.Revision, Digest: hex.EncodeToString(digest[:16]), Labels: d.Metadata.Labels, Spec: spec,
	}
	if d.Metadata.CreationTimestamp != nil {
		shown.Created = d.Metadata.CreationTimestamp.UTC()
	}
	return shown, nil
}

// decodeSpec reads a spec as the kind's own module does: Istio's take durations
// such as 3m, and fields that nobody knows. What is in protobuf's own JSON is
// read by protobuf, at a fraction of the cost.
func decodeSpec(raw json.RawMessage, into any) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if m, ok := into.(proto.Message); ok {
		if protojson.Unmarshal(raw, m) == nil {
			return nil
		}
		proto.Reset(m)
	}
	return json.Unmarshal(raw, into)
}

// at is what was decoded of the same bytes, for an object that is stored anew.
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
		if h.binding != nil {
			bound := *h.binding
			bound.object = same.shown
			same.binding = &bound
		}
	}
	return &same
}

// specOf decodes an object anew, for the rare reader of a spec that is not kept.
func specOf(o *Object) func() any {
	return func() any {
		again, err := decode(o)
		if err != nil {
			return nil // cannot be: it was decoded before
		}
		return again.Spec
	}
}

// withSpec is the object with its spec, decoded anew where it was not kept.
func (h *held) withSpec() *federation.Object {
	if h.shown.Decode == nil {
		return h.shown
	}
	shown := *h.shown
	shown.Spec, shown.Decode = h.shown.Decode(), nil
	return &shown
}
