package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/configtest/memory"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// engine takes whole objects as they are; it merges and validates nothing. A
// manifest with the word BAD is refused.
type engine struct {
	store   *memory.Store
	objects *config.Aggregate
	// The last of each that was asked for.
	applied    apply.Request
	deleted    apply.Deletion
	rolledBack apply.Rollback
	registered []byte
	ttl        time.Duration
}

func object(file apply.File, document string) (config.Change, error) {
	data, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		return config.Change{}, err
	}
	var head struct {
		APIVersion, Kind string
		Metadata         struct{ Namespace, Name string }
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return config.Change{}, fmt.Errorf("%s: %w", file.Name, err)
	}
	group, _, _ := strings.Cut(head.APIVersion, "/")
	key := federation.ObjectKey{Group: group, Kind: head.Kind, Namespace: head.Metadata.Namespace, Name: head.Metadata.Name}
	return config.Change{Key: key, Object: &config.Object{Key: key, APIVersion: head.APIVersion, Manifest: data}}, nil
}

func (e *engine) Apply(ctx context.Context, r apply.Request) (apply.Result, error) {
	e.applied = r
	var changes []config.Change
	for _, file := range r.Manifests {
		for i, document := range strings.Split(file.Data, "\n---\n") {
			change, err := object(file, document)
			if err != nil || strings.Contains(document, "BAD") {
				return apply.Result{DryRun: r.DryRun, Errors: []apply.Error{{
					Code: "INVALID", Message: "this is bad", Field: "spec.hosts[0]", Key: change.Key, Manager: "someone",
					Place: apply.Place{File: file.Name, Document: i + 1, Line: 7, Column: 3},
				}}}, nil
			}
			changes = append(changes, change)
		}
	}
	return e.commit(ctx, r.DryRun, changes, r.Origin)
}

func (e *engine) Delete(ctx context.Context, d apply.Deletion) (apply.Result, error) {
	e.deleted = d
	var changes []config.Change
	for _, key := range d.Objects {
		if _, ok := e.objects.Latest().State.Object(key); !ok {
			return apply.Result{Errors: []apply.Error{{Code: apply.NotFound, Key: key, Message: "there is no such object"}}}, nil
		}
		changes = append(changes, config.Change{Key: key})
	}
	return e.commit(ctx, d.DryRun, changes, d.Origin)
}

func (e *engine) Rollback(ctx context.Context, r apply.Rollback) (apply.Result, error) {
	e.rolledBack = r
	then, err := e.store.At(ctx, r.To)
	if err != nil {
		return apply.Result{Errors: []apply.Error{{Code: apply.UnknownRevision, Field: "to", Message: err.Error()}}}, nil
	}
	stays := map[federation.ObjectKey]bool{}
	var changes []config.Change
	for i, o := range then {
		stays[o.Key] = true
		if now, ok := e.objects.Latest().State.Object(o.Key); !ok || !bytes.Equal(now.Manifest, o.Manifest) {
			changes = append(changes, config.Change{Key: o.Key, Object: &then[i]})
		}
	}
	for o := range e.objects.Latest().State.Objects() {
		if source, _ := e.objects.Latest().SourceOf(o.Key); source == "etcd" && !stays[o.Key] {
			changes = append(changes, config.Change{Key: o.Key})
		}
	}
	return e.commit(ctx, r.DryRun, changes, r.Origin)
}

func (e *engine) commit(ctx context.Context, dryRun bool, changes []config.Change, o apply.Origin) (apply.Result, error) {
	base := e.objects.Latest().Revision()
	result := apply.Result{DryRun: dryRun, Revision: base}
	for _, c := range changes {
		change := apply.Change{Key: c.Key, Action: config.Created, Object: c.Object}
		old, had := e.objects.Latest().State.Object(c.Key)
		change.Before = old
		if c.Object == nil {
			change.Action = config.Deleted
		} else if had {
			change.Action = config.Updated
		}
		result.Changes = append(result.Changes, change)
	}
	result.Findings = []apply.Finding{{Code: "UNUSED", Severity: apply.Warning, Message: "nobody asks for it", Field: "spec"}}
	if dryRun {
		result.Before, result.After = federation.Empty(), federation.Empty()
	}
	if dryRun || len(changes) == 0 {
		return result, nil
	}
	note := config.Note{Author: o.Author, Time: noon, Message: o.Message, Manager: "ops", IdempotencyKey: o.IdempotencyKey}
	revision, err := e.store.Commit(ctx, config.Commit{Base: base, Changes: changes, Note: note})
	if err != nil {
		return result, err
	}
	result.Revision = revision
	for _, c := range result.Changes {
		if c.Object != nil {
			c.Object.Revision = revision
		}
	}
	_, err = e.objects.WaitFor(ctx, revision)
	return result, err
}

func (e *engine) History(ctx context.Context, key federation.ObjectKey) (config.ObjectHistory, error) {
	return e.store.History(ctx, key)
}

func (e *engine) Register(ctx context.Context, manifest []byte, ttl time.Duration) (time.Time, []apply.Error, error) {
	e.registered, e.ttl = manifest, ttl
	change, err := object(apply.File{}, string(manifest))
	if err != nil || bytes.Contains(manifest, []byte("BAD")) {
		return time.Time{}, []apply.Error{{Code: "INVALID", Message: "this is bad", Field: "spec.address", Key: change.Key}}, nil
	}
	_, err = e.store.Register(ctx, *change.Object, ttl)
	return noon.Add(ttl), nil, err
}

// configSource is a source that gives what it has from the start.
type configSource struct {
	kinds   []federation.Kind
	objects []*config.Object
	trouble []config.Problem
}

func (s configSource) Kinds() []federation.Kind { return s.kinds }

func (s configSource) Run(ctx context.Context, to config.Sink) error {
	update := config.Update{Revision: 5, Full: true}
	for _, o := range s.objects {
		update.Events = append(update.Events, config.Event{New: o})
	}
	to.Update(update)
	to.Trouble(s.trouble)
	<-ctx.Done()
	return ctx.Err()
}

func stored(t testing.TB, manifest string) *config.Object {
	t.Helper()
	change, err := object(apply.File{}, manifest)
	if err != nil {
		t.Fatal(err)
	}
	change.Object.Revision = 5
	return change.Object
}

// run runs until the test ends.
func run(t testing.TB, runner interface{ Run(context.Context) error }) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- runner.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("running ends with %v", err)
		}
	})
}
