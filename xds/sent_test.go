package xds

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/xdstest"
)

// wantContent compares what is shown with what the client has of the resource.
func wantContent(t *testing.T, what string, shown fleet.Content, r xdstest.Response, name string) {
	t.Helper()
	m, err := r.Resources[name].UnmarshalNew()
	if err != nil {
		t.Fatal(err)
	}
	if shown.JSON == nil {
		t.Fatalf("%s: %s is not shown", what, name)
	}
	text, err := shown.JSON()
	if err != nil || !bytes.Equal(text, indented(m)) {
		t.Errorf("%s: %s is shown as %s (%v), but the client was sent %s", what, name, text, err, indented(m))
	}
	if version := r.Versions[name]; version != "" && version != shown.Version {
		t.Errorf("%s: the version of %s is %s, but the client was sent %s", what, name, shown.Version, version)
	}
}

func TestR44ProxyConfigShowsWhatAProxyWasSent(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h := newHub(t)
		h.set(service("web", 1), service("cart", 2))
		c := h.client(xdstest.Options{Delta: delta})
		c.get(xdstest.Request{Type: xdstest.CDS, Names: []string{"*"}})
		first := c.get(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("web"), cluster("cart")}})
		h.eventually("all is accepted", func(v *fleet.Value) bool {
			return slices.ContainsFunc(slices.Collect(v.Proxies()), func(p *fleet.Proxy) bool {
				of := p.Sync[xdstest.EDS]
				return of.State == fleet.Synced && of.VersionAcked != "" // SYNCED is also who was sent nothing yet
			})
		})
		stream := slices.Collect(h.fleet.Latest().Proxies())[0].Key()
		all := h.server.Sent(h.aggregate.Latest(), h.fleet.Latest(), stream, xdstest.EDS)
		if len(all) != 2 || all[0].Name != cluster("cart") || all[1].Name != cluster("web") {
			t.Fatalf("it shows %+v", all)
		}
		for _, one := range all {
			wantContent(t, "sent", one.Sent, first, one.Name)
			wantContent(t, "accepted", one.Acked, first, one.Name)
		}
		h.set(service("web", 1, 3))
		second := c.next(xdstest.EDS)
		web := h.server.Sent(h.aggregate.Latest(), h.fleet.Latest(), stream, xdstest.EDS)[1]
		wantContent(t, "sent again", web.Sent, second, cluster("web"))
		wantContent(t, "still accepted", web.Acked, first, cluster("web"))
		if found := h.server.Sent(h.aggregate.Latest(), h.fleet.Latest(), fleet.Key{StreamID: "none"}, xdstest.EDS); found != nil {
			t.Errorf("a stream that is not there was sent %+v", found)
		}
		if found := h.server.Sent(h.aggregate.Latest(), h.fleet.Latest(), stream, xdstest.LDS); found != nil {
			t.Errorf("of a type that it did not ask for it was sent %+v", found)
		}
	})
}

func TestR44ProxyConfigHidesWhatIsSecret(t *testing.T) {
	const key = "PRIVATE-KEY-OF-THE-TEST"
	text := func(s string) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: s}}
	}
	certificate := &tlsv3.TlsCertificate{CertificateChain: text("the chain"), PrivateKey: text(key), Password: text(key)}
	packed,
		err := anypb.New(&tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{TlsCertificates: []*tlsv3.TlsCertificate{certificate}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := newResource(envoy.ClusterType, "c", &clusterv3.Cluster{Name: "c", TransportSocket: &corev3.TransportSocket{
		Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed},
	}})
	if err != nil {
		t.Fatal(err)
	}
	shown, err := r.content(envoy.ClusterType).JSON()
	if err != nil || strings.Contains(string(shown), key) || !strings.Contains(string(shown), "the chain") || !json.Valid(shown) {
		t.Errorf("it is shown as %s (%v)", shown, err)
	}
	if !strings.Contains(string(r.value()), key) {
		t.Error("what is sent has changed, too")
	}
	secret, err := newResource(envoy.SecretType, "s",
		&tlsv3.Secret{Name: "s", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: certificate}})
	if err != nil {
		t.Fatal(err)
	}
	if of := secret.content(envoy.SecretType); of.JSON != nil || of.Version != secret.version {
		t.Errorf("of a secret more than its version is shown: %+v", of)
	}
}

// TestR44LookingOnGoesBesideTheStream: a reader looks at what a stream was sent
// while it is sent more, and sees each time whole resources.
func TestR44LookingOnGoesBesideTheStream(t *testing.T) {
	h := newHub(t)
	h.set(service("web", 1))
	c := h.client(xdstest.Options{Delta: true})
	c.get(xdstest.Request{Type: xdstest.CDS, Names: []string{"*"}})
	stream := slices.Collect(h.fleet.Latest().Proxies())[0].Key()
	stop, ended := make(chan struct{}), make(chan string, 1)
	go func() {
		for {
			select {
			case <-stop:
				ended <- ""
				return
			default:
			}
			for _, one := range h.server.Sent(h.aggregate.Latest(), h.fleet.Latest(), stream, xdstest.CDS) {
				if one.Sent.Version == "" || one.Sent.JSON == nil {
					ended <- one.Name
					return
				}
			}
		}
	}()
	for i := range 20 {
		h.set(service("more"+string(rune('a'+i)), 1))
		c.accept(xdstest.CDS)
	}
	close(stop)
	if name := <-ended; name != "" {
		t.Errorf("%s was seen without content", name)
	}
}
