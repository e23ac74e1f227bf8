package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync/atomic"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/schema"
)

// NewObject writes an admitted object as JSON. The first State that has the object takes what was
// decoded of it, so that nothing is decoded twice.
func NewObject(key federation.ObjectKey, apiVersion string, of schema.Admitted) (*Object, error) {
	metadata, err := schema.JSON(of.Object["metadata"])
	if err != nil {
		return nil, fmt.Errorf("writing its metadata: %w", err)
	}
	whole := maps.Clone(of.Object)
	whole["metadata"] = metadata
	o := &Object{Key: key, APIVersion: apiVersion}
	if of.JSON != nil {
		whole["spec"] = of.JSON
		o.read = newRead(&parts{metadata: metadata, spec: of.JSON, decoded: of.Spec})
	}
	o.Manifest, err = schema.JSON(whole)
	if err != nil {
		return nil, fmt.Errorf("writing it: %w", err)
	}
	if err := o.checkNameOf(of.Object); err != nil {
		return nil, err
	}
	return o, nil
}

// parts are those of a manifest that the hub reads, and its spec, decoded.
type parts struct {
	metadata, spec json.RawMessage
	decoded        any   // nil: it was not
	held           *held // what a state has of all this; nil: it was not prepared
}

// read has the parts of an object until they are taken: what the object means replaces them. It
// is shared by copies of the object.
type read struct{ once atomic.Pointer[parts] }

func newRead(p *parts) *read {
	r := &read{}
	r.once.Store(p)
	return r
}

// take returns the parts the first time, then nil.
func (r *read) take() *parts {
	if r == nil {
		return nil
	}
	return r.once.Swap(nil)
}
