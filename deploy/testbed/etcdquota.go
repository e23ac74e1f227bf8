package testbed

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// filler is a key that only the testbed knows.
var filler = base64.StdEncoding.EncodeToString([]byte("/testbed/filler"))

// call asks a member through etcd's JSON gateway.
func (e *Etcd) call(method string, request map[string]any, into any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL+"/v3/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer := send(e.web, r)
	if answer.Err != nil {
		return answer.Err
	}
	if answer.Status != http.StatusOK {
		return fmt.Errorf("%s: status %d: %.200s", method, answer.Status, answer.Body)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer.Body, into)
}

// Fill writes until the quota is used up and etcd accepts no more. Give the members
// a small one with --quota-backend-bytes.
func (c *EtcdCluster) Fill() {
	c.t.Helper()
	value := base64.StdEncoding.EncodeToString(make([]byte, 1<<20))
	for range 1 << 10 {
		if err := c.Members[0].call("kv/put", map[string]any{"key": filler, "value": value}, nil); err != nil {
			return
		}
	}
	c.t.Fatal("filling etcd: it has no end; set --quota-backend-bytes")
}

// Free gives back what Fill took, as an operator would: delete, compact,
// defragment, disarm.
func (c *EtcdCluster) Free() {
	c.t.Helper()
	var now struct{ Header struct{ Revision string } }
	steps := []func() error{
		func() error { return c.Members[0].call("kv/deleterange", map[string]any{"key": filler}, &now) },
		func() error {
			return c.Members[0].call("kv/compaction", map[string]any{"revision": now.Header.Revision, "physical": true}, nil)
		},
	}
	for _, e := range c.Members {
		steps = append(steps, func() error { return e.call("maintenance/defragment", map[string]any{}, nil) })
	}
	steps = append(steps, c.disarm)
	for _, step := range steps {
		if err := step(); err != nil {
			c.t.Fatalf("freeing etcd: %v", err)
		}
	}
}

// disarm ends the alarm that each member has raised for itself.
func (c *EtcdCluster) disarm() error {
	var raised struct{ Alarms []map[string]any }
	if err := c.Members[0].call("maintenance/alarm", map[string]any{"action": "GET"}, &raised); err != nil {
		return err
	}
	for _, alarm := range raised.Alarms {
		alarm["action"] = "DEACTIVATE"
		if err := c.Members[0].call("maintenance/alarm", alarm, nil); err != nil {
			return err
		}
	}
	return nil
}
