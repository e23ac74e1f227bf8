package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

// HubOptions say how the hub's own program is run.
type HubOptions struct {
	Program   string     // The path of its binary.
	Config    string     // Text of the config file; empty: none.
	Args      []string   // Besides addresses, certificates and the data folder.
	Namespace *Namespace // Nil is the network of the test.
	Proven    bool       // Callers must authenticate; else --dev on loopback addresses.
	Early     bool       // Return as soon as the program runs.
}

// Hub is the hub's own program. With --dev proxies reach it over a unix socket,
// whatever their network, else over TCP.
type Hub struct {
	*Process
	URL    string       // Of GraphQL's address.
	Health string       // The URL of its health address.
	XDS    string       // HOST:PORT or unix:PATH.
	Dir    string       // Of its data and files.
	Web    *http.Client // Reaches URL, as the operator.
	Plain  *http.Client // Reaches Health.
	CA     []byte       // Signs its certificate, in PEM; nil with --dev.
}

// StartHub runs a hub until the test ends and returns when it is ready.
func StartHub(t testing.TB, o HubOptions) *Hub {
	t.Helper()
	dir := ShortDir(t)
	at := o.Namespace.place(netip.Addr{})
	graphql, health := freeAddress(t, o.Namespace, at), freeAddress(t, o.Namespace, at)
	h := &Hub{
		URL: "http://" + graphql, Health: "http://" + health, XDS: "unix:" + filepath.Join(dir, "xds.sock"), Dir: dir,
		Web: o.Namespace.patientClient(nil), Plain: o.Namespace.patientClient(nil),
	}
	args := []string{"serve", "--dev"}
	if o.Proven {
		args = h.secure(t, o, at)
	}
	args = append(args, "--data-dir", filepath.Join(dir, "data"), "--graphql-addr", graphql, "--health-addr", health, "--xds-addr", h.XDS)
	if o.Config != "" {
		args = append(args, "--config", writeFile(t, dir, "isthmus.yaml", []byte(o.Config)))
	}
	program := ProgramOptions{Name: "isthmus", Path: o.Program, Args: append(args, o.Args...), Namespace: o.Namespace}
	if !o.Early {
		program.Ready = h.Ready
	}
	h.Process = StartProgram(t, program)
	return h
}

// secure gives the hub a certificate, and the operator one of the same authority.
func (h *Hub) secure(t testing.TB, o HubOptions, at netip.Addr) []string {
	t.Helper()
	authority := NewAuthority(t, "operators")
	cert, key := authority.Issue(Subject{Name: "isthmus", Hosts: []string{at.String()}})
	h.CA, h.XDS, h.URL = authority.PEM, freeAddress(t, o.Namespace, at), "https"+h.URL[len("http"):]
	h.Web = o.Namespace.patientClient(authority.TLS(Subject{Name: "operator"}))
	return []string{
		"serve", "--tls-cert", writeFile(t, h.Dir, "hub.pem", cert), "--tls-key", writeFile(t, h.Dir, "hub-key.pem", key),
		"--tls-client-ca", writeFile(t, h.Dir, "operators.pem", authority.PEM),
	}
}

// Ready is the hub's own word. It opens the socket to the users of proxies before
// the hub is ready, so that none of them backs off.
func (h *Hub) Ready(ctx context.Context) error {
	if h.CA == nil {
		if err := os.Chmod(filepath.Join(h.Dir, "xds.sock"), 0o666); err != nil {
			return err
		}
	}
	return probe(h.Plain, h.Health+"/readyz")(ctx)
}

// Query sends a GraphQL operation and reads the data of the answer.
func (h *Hub) Query(operation string, variables map[string]any, into any) error {
	body, err := json.Marshal(map[string]any{"query": operation, "variables": variables})
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPost, h.URL+"/graphql", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer := send(h.Web, request)
	if answer.Err != nil {
		return answer.Err
	}
	var envelope struct {
		Data   json.RawMessage
		Errors []struct{ Message string }
	}
	if err := json.Unmarshal(answer.Body, &envelope); err != nil {
		return fmt.Errorf("status %d: %.300s", answer.Status, answer.Body)
	}
	if len(envelope.Errors) > 0 {
		return errors.New(envelope.Errors[0].Message)
	}
	return json.Unmarshal(envelope.Data, into)
}

// ShortDir is a folder whose path is short enough for a unix socket, and that
// every user may enter. It goes with the test.
func ShortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "isthmus-hub-")
	if err != nil {
		t.Fatalf("making a folder: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatalf("making a folder: %v", err)
	}
	return dir
}

// freeAddress is HOST:PORT that no process listens on.
func freeAddress(t testing.TB, n *Namespace, at netip.Addr) string {
	t.Helper()
	return netip.AddrPortFrom(at, uint16(FreePort(t, n, at))).String()
}
