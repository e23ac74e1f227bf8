package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/graph/model"
)

// defaultTTL is how long a registration holds that does not say.
const defaultTTL = time.Minute

func workloadKey(namespace, name string) federation.ObjectKey {
	return federation.WorkloadEntryKind.Key(namespace, name)
}

// RegisterWorkload puts a WorkloadEntry into the mesh for some time.
func (m mutation) RegisterWorkload(ctx context.Context, in model.RegisterWorkloadInput) (model.RegisterWorkloadPayload, error) {
	if m.Config.Registrar == nil {
		return model.RegisterWorkloadPayload{}, errNoConfig
	}
	read, ttl := reader{}, defaultTTL
	if in.TTL != nil {
		ttl = read.duration("ttl", *in.TTL, lengths{5 * time.Second, 24 * time.Hour})
	}
	manifest, err := read.workloadEntry(in)
	if err != nil || len(read.errs) > 0 {
		return model.RegisterWorkloadPayload{UserErrors: model.UserErrors(read.errs)}, err
	}
	expires, problems, err := m.Config.Registrar.Register(ctx, manifest, ttl)
	if err != nil || len(problems) > 0 {
		return model.RegisterWorkloadPayload{UserErrors: model.UserErrors(problems)}, shown(err)
	}
	return model.RegisterWorkloadPayload{Registration: registration(workloadKey(in.Namespace, in.Name), expires)}, nil
}

func registration(key federation.ObjectKey, expires time.Time) *model.WorkloadRegistration {
	return &model.WorkloadRegistration{Object: model.NewObjectRef(key, 0), ExpiresAt: expires}
}

// workloadEntry writes a WorkloadEntry; whether it is a good one is for its
// schema to say.
func (r *reader) workloadEntry(in model.RegisterWorkloadInput) ([]byte, error) {
	if in.Namespace == "" {
		r.refuse("namespace", "a workload is registered in a namespace: name one")
	}
	spec := map[string]any{"address": in.Address}
	set := func(field string, text *string) {
		if value(text) != "" {
			spec[field] = *text
		}
	}
	set("network", in.NetworkID)
	set("serviceAccount", in.ServiceAccount)
	if in.Weight != nil {
		spec["weight"] = *in.Weight
	}
	if len(in.Ports) > 0 {
		spec["ports"] = r.ports(in.Ports)
	}
	labels := map[string]string{}
	for i, l := range in.Labels {
		if _, twice := labels[l.Key]; twice {
			r.refuse(fmt.Sprintf("labels[%d].key", i), "there are two labels of the key %q", cut(l.Key))
		}
		labels[l.Key] = l.Value
	}
	if len(labels) > 0 {
		spec["labels"] = labels
	}
	if in.Locality != nil {
		spec["locality"] = r.locality(*in.Locality)
	}
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": federation.WorkloadEntryKind.Group + "/v1", "kind": federation.WorkloadEntryKind.Name,
		"metadata": map[string]any{"namespace": in.Namespace, "name": in.Name, "labels": labels},
		"spec":     spec,
	})
	if err != nil {
		return nil, fmt.Errorf("writing a WorkloadEntry: %w", err)
	}
	return manifest, nil
}

func (r *reader) ports(in []model.WorkloadPortInput) map[string]int {
	all := make(map[string]int, len(in))
	for i, p := range in {
		if _, twice := all[p.Name]; twice {
			r.refuse(fmt.Sprintf("ports[%d].name", i), "there are two ports of the name %q", cut(p.Name))
		}
		all[p.Name] = p.Number
	}
	return all
}

// locality writes a place as WorkloadEntries do, the larger parts first.
func (r *reader) locality(in model.LocalityInput) string {
	parts := []string{value(in.Region), value(in.Zone), value(in.SubZone)}
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	for i, part := range parts {
		if part == "" || strings.Contains(part, "/") {
			r.refuse("locality."+[]string{"region", "zone", "subZone"}[i],
				"a locality names region, zone and subZone in this order, without a slash in them")
		}
	}
	return strings.Join(parts, "/")
}

// RenewWorkload restarts the TTL of a registration.
func (m mutation) RenewWorkload(ctx context.Context, in model.RenewWorkloadInput) (model.RenewWorkloadPayload, error) {
	if m.Config.Leases == nil {
		return model.RenewWorkloadPayload{}, errNoConfig
	}
	key := workloadKey(in.Namespace, in.Name)
	expires, err := m.Config.Leases.Renew(ctx, key)
	if errors.Is(err, config.ErrNoLease) {
		gone := apply.Error{Code: apply.NotFound, Key: key, Message: config.ErrNoLease.Error()}
		return model.RenewWorkloadPayload{UserErrors: model.UserErrors([]apply.Error{gone})}, nil
	}
	if err != nil {
		return model.RenewWorkloadPayload{}, shown(err)
	}
	return model.RenewWorkloadPayload{Registration: registration(key, expires), UserErrors: []model.UserError{}}, nil
}

// ReleaseWorkload ends a registration.
func (m mutation) ReleaseWorkload(ctx context.Context, in model.ReleaseWorkloadInput) (model.ReleaseWorkloadPayload, error) {
	if m.Config.Leases == nil {
		return model.ReleaseWorkloadPayload{}, errNoConfig
	}
	key := workloadKey(in.Namespace, in.Name)
	if err := m.Config.Leases.Release(ctx, key); err != nil {
		return model.ReleaseWorkloadPayload{}, shown(err)
	}
	ref := model.NewObjectRef(key, 0)
	return model.ReleaseWorkloadPayload{Object: &ref, UserErrors: []model.UserError{}}, nil
}
