package testbed

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"testing"
)

// ConsulOptions say how a Consul server is run.
type ConsulOptions struct {
	Name       string         // The node's name; default consul.
	Datacenter string         // Default dc1.
	Namespace  *Namespace     // Nil is the network of the test.
	Address    netip.Addr     // Default the namespace's first address, else 127.0.0.1.
	ACL        bool           // Tokens are needed; what they do not grant is denied.
	TLS        bool           // Serve https (HTTP/2) instead of http.
	Persistent bool           // Data outlives Restart; otherwise it is kept in memory.
	Config     map[string]any // Further settings; they win over those of the testbed.
}

// Consul is one Consul server. Without Persistent, a Restart makes an empty
// datacenter of the same name whose indexes start again.
type Consul struct {
	*Process
	URL     string
	Address string // Host and port of URL.
	Token   string // Of the administrator; empty without ACL.
	CA      []byte // PEM; empty without TLS.

	t         testing.TB
	client    *http.Client
	authority *Authority
}

// StartConsul runs a Consul server and returns when it has a leader and its
// own node is in the catalog.
func StartConsul(t testing.TB, options ConsulOptions) *Consul {
	t.Helper()
	program := locate(t, "consul")
	if options.Name == "" {
		options.Name = "consul"
	}
	if options.Datacenter == "" {
		options.Datacenter = "dc1"
	}
	at := options.Namespace.place(options.Address)
	address := netip.AddrPortFrom(at, uint16(FreePort(t, options.Namespace, at)))
	c := &Consul{t: t, Address: address.String(), URL: "http://" + address.String(), client: administrator(options.Namespace, at, nil)}
	dir := t.TempDir()
	config := c.config(options, address)
	if options.TLS {
		c.secure(options, config, dir)
	}
	maps.Copy(config, options.Config)
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatalf("writing the configuration of Consul: %v", err)
	}
	args := []string{"agent", "-config-file=" + writeFile(t, dir, "consul.json", text)}
	if options.Persistent {
		args = append(args, "-bootstrap-expect=1", "-data-dir="+t.TempDir())
	} else {
		args = append(args, "-dev")
	}
	c.Process = StartProgram(t, ProgramOptions{
		Name: options.Name, Path: program, Args: args, Namespace: options.Namespace,
		Ready: probeNode(c, options.Name),
	})
	return c
}

// config is the agent's configuration without TLS. Only the HTTP port and the
// two that a server cannot do without are open.
func (c *Consul) config(options ConsulOptions, address netip.AddrPort) map[string]any {
	c.t.Helper()
	port := func() int { return FreePort(c.t, options.Namespace, address.Addr()) }
	config := map[string]any{
		"server": true, "node_name": options.Name, "datacenter": options.Datacenter,
		"bind_addr": address.Addr().String(), "client_addr": address.Addr().String(),
		"disable_update_check": true, "log_level": "info",
		"leave_on_terminate": false, "skip_leave_on_interrupt": true,
		"performance": map[string]any{"raft_multiplier": 1},
		"ports": map[string]any{
			"http": int(address.Port()), "https": -1, "dns": -1, "grpc": -1, "grpc_tls": -1,
			"server": port(), "serf_lan": port(), "serf_wan": -1,
		},
	}
	if options.ACL {
		c.Token = uuid()
		config["acl"] = map[string]any{
			"enabled": true, "default_policy": "deny",
			"tokens": map[string]any{"initial_management": c.Token, "agent": c.Token},
		}
	}
	return config
}

func (c *Consul) secure(options ConsulOptions, config map[string]any, dir string) {
	c.t.Helper()
	c.authority = NewAuthority(c.t, options.Name+"-ca")
	c.CA = c.authority.PEM
	address := netip.MustParseAddrPort(c.Address)
	cert, key := c.authority.Issue(Subject{
		Name: "consul", Hosts: []string{"localhost", "127.0.0.1", address.Addr().String(), "server." + options.Datacenter + ".consul"},
	})
	config["tls"] = map[string]any{"https": map[string]any{
		"ca_file":   writeFile(c.t, dir, "ca.crt", c.CA),
		"cert_file": writeFile(c.t, dir, "server.crt", cert),
		"key_file":  writeFile(c.t, dir, "server.key", key),
	}}
	ports := config["ports"].(map[string]any)
	ports["http"], ports["https"] = -1, int(address.Port())
	c.URL = "https://" + c.Address
	c.client = administrator(options.Namespace, address.Addr(), c.authority.TLS(Subject{Name: "testbed"}))
}

// administrator is the testbed's own client of a Consul. Consul limits the
// connections of each client address; on the loopback of the test the
// administrator has one of its own, so that the hub, which comes from 127.0.0.1,
// does not use up what the test needs.
func administrator(namespace *Namespace, at netip.Addr, config *tls.Config) *http.Client {
	if namespace != nil || !at.Is4() || !at.IsLoopback() {
		return namespace.patientClient(config)
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	return newClient(dialer.DialContext, config, administratorLimit)
}

// Do sends one request as the administrator. The path begins with /v1/.
func (c *Consul) Do(method, path string, body []byte) Response {
	return c.DoAs(c.Token, method, path, body)
}

// DoAs is Do with another token; an empty one is the anonymous user.
func (c *Consul) DoAs(token, method, path string, body []byte) Response {
	request, err := http.NewRequest(method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return Response{Err: err}
	}
	if token != "" {
		request.Header.Set("X-Consul-Token", token)
	}
	return send(c.client, request)
}

// Put writes a value as JSON, for example to /v1/catalog/register, and ends the
// test unless Consul takes it.
func (c *Consul) Put(path string, value any) Response {
	c.t.Helper()
	body, err := json.Marshal(value)
	if err != nil {
		c.t.Fatalf("putting %s: %v", path, err)
	}
	answer := c.Do(http.MethodPut, path, body)
	if err := answer.failed(); err != nil {
		c.t.Fatalf("putting %s: %v", path, err)
	}
	return answer
}

// Get reads JSON into a value and ends the test unless Consul answers.
func (c *Consul) Get(path string, into any) {
	c.t.Helper()
	answer := c.Do(http.MethodGet, path, nil)
	if err := answer.failed(); err != nil {
		c.t.Fatalf("getting %s: %v", path, err)
	}
	answer.Decode(c.t, into)
}

// NewToken returns a token that grants rules, such as service_prefix "" {
// policy = "read" }. Revoke it by DELETE of /v1/acl/token/ACCESSOR.
func (c *Consul) NewToken(rules string) (token, accessor string) {
	c.t.Helper()
	name := "testbed-" + secret()
	c.Put("/v1/acl/policy", map[string]any{"Name": name, "Rules": rules})
	var made struct{ SecretID, AccessorID string }
	c.Put("/v1/acl/token", map[string]any{"Policies": []map[string]any{{"Name": name}}}).Decode(c.t, &made)
	return made.SecretID, made.AccessorID
}

// probeNode returns nil once the server's own node is in the catalog.
func probeNode(c *Consul, node string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/v1/catalog/node/"+node, nil)
		if err != nil {
			return err
		}
		request.Header.Set("X-Consul-Token", c.Token)
		answer := send(c.client, request)
		if err := answer.failed(); err != nil {
			return err
		}
		if !bytes.Contains(answer.Body, []byte(`"TaggedAddresses"`)) {
			return fmt.Errorf("the node %s is not in the catalog yet", node)
		}
		return nil
	}
}
