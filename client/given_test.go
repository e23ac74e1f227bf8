package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"isthmus.dev/isthmus/client"
)

// TestK94WhatIsNotGivenIsNotSent: an older hub refuses an input with a field that it does not know, also if that is null. Hence a field
// that is not given is not sent. An empty list, an empty text, false and 0 are given. What callers write themselves is sent as it is.
func TestK94WhatIsNotGivenIsNotSent(t *testing.T) {
	kind, namespace := "Gateway", "shop"
	empty, no := "", false
	for name, row := range map[string]struct {
		ask  func(context.Context, *client.Client) error
		want string
	}{
		"a filter": {func(ctx context.Context, c *client.Client) error {
			_, err := client.Objects(ctx, c, 0, nil, &client.ConfigObjectFilter{Kind: &kind, Rejected: &no})
			return err
		}, `{"first":0,"filter":{"kind":"Gateway","rejected":false}}`},
		"no filter": {func(ctx context.Context, c *client.Client) error {
			_, err := client.Objects(ctx, c, 5, nil, nil)
			return err
		}, `{"first":5}`},
		"no variables": {func(ctx context.Context, c *client.Client) error {
			_, err := client.Hub(ctx, c)
			return err
		}, ``},
		"lists": {func(ctx context.Context, c *client.Client) error {
			_, err := client.Services(ctx, c, 5, nil, &client.ServiceFilter{Hostnames: []string{}, Namespace: &namespace}, nil)
			return err
		}, `{"first":5,"filter":{"hostnames":[],"namespace":"shop"}}`},
		"objects in lists": {func(ctx context.Context, c *client.Client) error {
			_, err := c.Apply(ctx, client.ApplyInput{
				Manifests: []string{`{"a":null}`}, Force: &no, Message: &empty,
				ExpectedRevisions: []client.ExpectedRevisionInput{{Kind: kind, Name: "web", Revision: "9007199254740993"}},
			}, false)
			return err
		}, `{"diff":false,"input":{"manifests":["{\"a\":null}"],"force":false,"message":"",` +
			`"expectedRevisions":[{"group":"","kind":"Gateway","name":"web","revision":"9007199254740993"}]}}`},
		"a subscription": {func(ctx context.Context, c *client.Client) error {
			return c.Follow(ctx, client.Following{Filter: &client.ChangeFilter{}}, nil)
		}, `{"filter":{},"objects":false}`},
		"what callers write": {func(ctx context.Context, c *client.Client) error {
			_, err := c.Do(ctx, client.Request{Query: "{x}", Variables: json.RawMessage(`{"a":null}`)})
			return err
		}, `{"a":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			var asked struct{ Variables json.RawMessage }
			c := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
					t.Error(err)
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"errors":[{"message":"noted"}]}`)
			}))
			var noted *client.Error
			if err := row.ask(t.Context(), c); err != nil && !errors.As(err, &noted) {
				t.Fatal(err)
			}
			if got, want := sorted(t, asked.Variables), sorted(t, []byte(row.want)); got != want {
				t.Errorf("sent was %s, want %s", got, want)
			}
		})
	}
}

// sorted is JSON in one form.
func sorted(t *testing.T, text []byte) string {
	t.Helper()
	if len(text) == 0 {
		return ""
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(out))
}
