package testbed

import (
	"net/http"
	"testing"
	"time"
)

func webRegistration() map[string]any {
	return map[string]any{
		"Node": "n1", "Address": "10.1.0.7",
		"Service": map[string]any{"ID": "web-1", "Service": "web", "Port": 8080},
		"Check":   map[string]any{"CheckID": "web-1", "ServiceID": "web-1", "Name": "web", "Status": "passing"},
	}
}

type catalogEntry struct{ ServiceAddress, Address, ServiceID string }

func TestConsulServesItsCatalog(t *testing.T) {
	t.Parallel()
	consul := StartConsul(t, ConsulOptions{})
	consul.Put("/v1/catalog/register", webRegistration())
	var entries []catalogEntry
	consul.Get("/v1/catalog/service/web", &entries)
	if len(entries) != 1 || entries[0].Address != "10.1.0.7" {
		t.Errorf("the catalog has %+v, want web on 10.1.0.7", entries)
	}
	consul.Restart()
	consul.Get("/v1/catalog/service/web", &entries)
	if len(entries) != 0 {
		t.Errorf("after a restart in memory the catalog has %+v, want nothing", entries)
	}
	group := consul.PID()
	consul.Stop()
	WaitFor(t, time.Minute, "Consul to end", func() error { return gone(group) })
}

func TestConsulWithTokensTLSAndDisk(t *testing.T) {
	t.Parallel()
	consul := StartConsul(t, ConsulOptions{Datacenter: "east", ACL: true, TLS: true, Persistent: true})
	consul.Put("/v1/catalog/register", webRegistration())

	anonymous := consul.DoAs("", http.MethodGet, "/v1/catalog/service/web", nil)
	var entries []catalogEntry
	anonymous.Decode(t, &entries)
	if len(entries) != 0 || anonymous.Header.Get("X-Consul-Default-Acl-Policy") != "deny" {
		t.Errorf("without a token the catalog has %+v with %v, want nothing by denial", entries, anonymous.Header)
	}
	token, accessor := consul.NewToken(`service_prefix "" { policy = "read" } node_prefix "" { policy = "read" }`)
	consul.DoAs(token, http.MethodGet, "/v1/catalog/service/web", nil).Decode(t, &entries)
	if len(entries) != 1 {
		t.Errorf("with a token to read the catalog has %+v, want web", entries)
	}
	if answer := consul.Do(http.MethodDelete, "/v1/acl/token/"+accessor, nil); answer.Status != http.StatusOK {
		t.Errorf("deleting a token: %d %s", answer.Status, answer.Body)
	}
	if answer := consul.DoAs(token, http.MethodGet, "/v1/catalog/service/web", nil); answer.Status != http.StatusForbidden {
		t.Errorf("with a deleted token the status is %d, want 403", answer.Status)
	}

	consul.Kill()
	consul.Restart()
	consul.Get("/v1/catalog/service/web?dc=east", &entries)
	if len(entries) != 1 {
		t.Errorf("after a restart from disk the catalog has %+v, want web", entries)
	}
}

func TestEtcdAsksForCertificates(t *testing.T) {
	authority := NewAuthority(t, "etcd-ca")
	etcd := StartEtcd(t, EtcdOptions{TLS: authority})
	get := func(subject *Authority) Response {
		config := subject.TLS(Subject{Name: "client"})
		config.RootCAs = authority.Pool()
		request, err := http.NewRequest(http.MethodGet, etcd.URL+"/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		return send((*Namespace)(nil).Client(config), request)
	}
	if answer := get(authority); answer.Status != http.StatusOK {
		t.Errorf("with the right authority: %d, %v", answer.Status, answer.Err)
	}
	if answer := get(NewAuthority(t, "other-ca")); answer.Err == nil {
		t.Errorf("with another authority etcd answers %d, want a refusal", answer.Status)
	}
}
