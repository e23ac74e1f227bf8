package attach

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
)

// writing is a request that may be carried out.
type writing struct {
	request Request
	uid     string
	spec    map[string]any
	fresh   bool // there must be no object yet
}

// manager owns the fields that a rotation sets.
const manager = "isthmus-credentials"

func (c *Clusters) write(ctx context.Context, result Result, w writing) (Result, error) {
	id := w.request.ID
	given := w.request.Credentials
	if c.o.Kinds[w.request.Provider].Identified {
		given.UID = w.uid
	}
	credentials, err := c.o.Credentials.Seal(id, given)
	if err != nil {
		return Result{}, err
	}
	object := map[string]any{
		"apiVersion": federation.MeshGroup + "/v1", "kind": federation.ClusterKind.Name,
		"metadata": map[string]any{"name": string(id)}, "spec": w.spec,
	}
	manifest, err := json.Marshal(object)
	if err != nil {
		return Result{}, fmt.Errorf("writing the object of cluster %s: %w", id, err)
	}
	request := apply.Request{
		Manifests: []apply.File{{Name: "cluster " + string(id), Data: string(manifest)}}, Credentials: []apply.Credentials{credentials},
		Manager: manager, Force: true, Origin: apply.Origin{
			Author:  w.request.Author,
			Message: "credentials of cluster " + string(id) + " rotated",
		},
	}
	if w.fresh {
		request.Manager, request.Force, request.Message = "", false, "cluster "+string(id)+" attached"
		request.ExpectedRevisions = map[federation.ObjectKey]int64{KeyOf(id): 0}
	}
	applied, err := c.o.Engine.Apply(ctx, request)
	if err != nil {
		return Result{}, err
	}
	result.Findings = append(result.Findings, applied.Findings...)
	if len(applied.Errors) > 0 {
		result.Errors = duplicates(id, applied.Errors)
		return result, nil
	}
	c.remember(id, w.uid)
	c.await(ctx, func(s *federation.Snapshot) bool { return c.isThere(s, w.request) })
	return result, nil
}

// duplicates reports a taken ID if an object with it was written meanwhile.
func duplicates(id federation.ClusterID, all []apply.Error) []apply.Error {
	for i, e := range all {
		if e.Code == apply.PreconditionFailed {
			all[i] = apply.Error{
				Code: DuplicateClusterID, Field: "clusterID",
				Message: fmt.Sprintf("the ID %s was taken in the meantime: give this cluster another one", id),
			}
		}
	}
	return all
}

// await waits until the snapshot is as it should be, at most as long as an answer
// may wait: what was stored is in force, shown or not.
func (c *Clusters) await(ctx context.Context, holds func(*federation.Snapshot) bool) bool {
	limit := time.NewTimer(c.o.Patience)
	defer limit.Stop()
	for {
		plan, s := c.o.Plans.Latest(), c.o.Snapshots.Latest()
		if holds(s) {
			return true
		}
		select {
		case <-s.Superseded():
		case <-plan.Superseded():
		case <-limit.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
