package graph

import (
	"fmt"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/graph/model"
)

// applyRequest reads the input of an apply; with errors the request is useless.
func applyRequest(in model.ApplyInput) (apply.Request, *waiting, []apply.Error) {
	var read reader
	request := apply.Request{
		Manifests: read.files(in), DryRun: value(in.DryRun), Manager: value(in.FieldManager), Force: value(in.Force),
		Namespace: value(in.Namespace), CompareResourceVersion: value(in.CompareResourceVersion),
		Set: value(in.Set), Prune: value(in.Prune),
		ExpectedRevision:  read.optional("expectedRevision", in.ExpectedRevision),
		ExpectedRevisions: read.expected(in.ExpectedRevisions),
		Origin:            apply.Origin{Message: value(in.Message), IdempotencyKey: value(in.IdempotencyKey)},
	}
	wait := read.wait(in.WaitFor)
	return request, wait, read.errs
}

// files names every text, so that problems can say where they are.
func (r *reader) files(in model.ApplyInput) []apply.File {
	if (in.Manifests == nil) == (in.Files == nil) {
		r.refuse("manifests", "give the manifests either as manifests or as files")
		return nil
	}
	var all []apply.File
	for i, text := range in.Manifests {
		name := "manifests"
		if len(in.Manifests) > 1 {
			name = fmt.Sprintf("manifests[%d]", i)
		}
		all = append(all, apply.File{Name: name, Data: text})
	}
	for _, f := range in.Files {
		all = append(all, apply.File{Name: f.Name, Data: f.Content})
	}
	return all
}

func (r *reader) expected(in []model.ExpectedRevisionInput) map[federation.ObjectKey]int64 {
	if len(in) == 0 {
		return nil
	}
	all := make(map[federation.ObjectKey]int64, len(in))
	for i, o := range in {
		key := federation.ObjectKey{Group: o.Group, Kind: o.Kind, Namespace: value(o.Namespace), Name: o.Name}
		field := fmt.Sprintf("expectedRevisions[%d].revision", i)
		n := r.revision(field, o.Revision)
		if other, twice := all[key]; twice && other != n {
			r.refuse(field, "%s is expected at two revisions, %d and %d", key, other, n)
		}
		all[key] = n
	}
	return all
}
