package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/clients"
)

// filled is a cluster of many services with ten endpoints each.
func filled(services int) *model {
	m := newModel("")
	for i := range services {
		name := fmt.Sprintf("s%d", i)
		m.set(&service{
			record:  record{k: key{Namespace: "shop", Name: name}},
			service: federation.ServiceKey{Hostname: federation.Hostname(name + ".shop.svc.cluster.local"), Namespace: "shop"},
			shard:   federation.Shard{Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}}},
		})
		m.set(parseSlice(benchSlice(name, i, 0)))
	}
	m.edit(true)
	return m
}

func benchSlice(name string, i, round int) *discoveryv1.EndpointSlice {
	port := int32(8080)
	out := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new(string), Port: &port}},
	}
	for e := range 10 {
		node := fmt.Sprintf("n%d", (i+e)%200)
		address := netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), byte(e)})
		if e == 0 {
			address = netip.AddrFrom4([4]byte{11, byte(round >> 16), byte(round >> 8), byte(round)})
		}
		out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{Addresses: []string{address.String()}, NodeName: &node})
	}
	return out
}

// BenchmarkSliceEvent is one changed EndpointSlice to one edit.
func BenchmarkSliceEvent(b *testing.B) {
	for _, services := range []int{1000, 20000} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			m := filled(services)
			b.ReportAllocs()
			round := 0
			for b.Loop() {
				round++
				m.set(parseSlice(benchSlice("s7", 7, round)))
				if e, _ := m.edit(false); len(e.Services.Set) != 1 {
					b.Fatal("not one service changed")
				}
			}
		})
	}
}

// BenchmarkFull is the full edit after all lists.
func BenchmarkFull(b *testing.B) {
	for b.Loop() {
		filled(5000)
	}
}

// largeServer is an API server with many services and slices. Its lists come in pages, and a watch of slices
// sends what it is told.
type largeServer struct {
	pages map[string][]byte // by path and continue token
	watch chan []byte
}

func newLargeServer(b *testing.B, slices int) *largeServer {
	b.Helper()
	c := &largeServer{pages: map[string][]byte{}, watch: make(chan []byte)}
	const page = 500
	for from := 0; from < slices; from += page {
		var list discoveryv1.EndpointSliceList
		var services corev1.ServiceList
		list.ResourceVersion, services.ResourceVersion = "10", "10"
		for i := from; i < min(from+page, slices); i++ {
			name := fmt.Sprintf("s%d", i)
			list.Items = append(list.Items, *versioned(name, i, 0))
			services.Items = append(services.Items, corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", ResourceVersion: "11"},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
			})
		}
		token := ""
		if from > 0 {
			token = fmt.Sprint(from)
		}
		if from+page < slices {
			list.Continue = fmt.Sprint(from + page)
			services.Continue = list.Continue
		}
		c.pages["endpointslices "+token], c.pages["services "+token] = encoded(b, list), encoded(b, services)
	}
	return c
}

func encoded(b *testing.B, v any) []byte {
	b.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	return text
}

func versioned(name string, i, round int) *discoveryv1.EndpointSlice {
	s := benchSlice(name, i, round)
	s.APIVersion, s.Kind, s.ResourceVersion = "discovery.k8s.io/v1", "EndpointSlice", fmt.Sprint(11+round)
	return s
}

func (c *largeServer) RoundTrip(request *http.Request) (*http.Response, error) {
	query, path := request.URL.Query(), request.URL.Path
	text := []byte(`{"metadata":{"resourceVersion":"10"},"items":[]}`)
	switch {
	case query.Get("watch") != "" && strings.HasSuffix(path, "/endpointslices"):
		return answer(http.StatusOK, &spoken{from: c.watch, done: request.Context().Done()}), nil
	case query.Get("watch") != "":
		return answer(http.StatusOK, quiet{done: request.Context().Done()}), nil
	case strings.HasSuffix(path, "/endpointslices"):
		text = c.pages["endpointslices "+query.Get("continue")]
	case strings.HasSuffix(path, "/services"):
		text = c.pages["services "+query.Get("continue")]
	case strings.HasSuffix(path, "/namespaces"):
		text = []byte(`{"metadata":{"resourceVersion":"10"},"items":[` + pacedItem + `]}`)
	}
	return answer(http.StatusOK, io.NopCloser(bytes.NewReader(text))), nil
}

// spoken is the body of a watch.
type spoken struct {
	from <-chan []byte
	done <-chan struct{}
	rest []byte
}

func (t *spoken) Read(p []byte) (int, error) {
	for len(t.rest) == 0 {
		select {
		case t.rest = <-t.from:
		case <-t.done:
			return 0, context.Canceled
		}
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

func (t *spoken) Close() error { return nil }

// counted tells of each edit and of READY.
type counted struct {
	edits chan struct{}
	ready chan struct{}
}

func (c counted) Update(federation.Edit) { c.edits <- struct{}{} }

func (c counted) Status(s federation.RegistryStatus) {
	if s.Phase == federation.Ready {
		close(c.ready)
	}
}

// read runs a registry against the server and returns after its first edit.
func read(b *testing.B, server *largeServer) (recorder counted, stop func()) {
	b.Helper()
	client, err := clients.New(&rest.Config{Host: "http://cluster.test", Transport: server, QPS: -1})
	if err != nil {
		b.Fatal(err)
	}
	recorder = counted{edits: make(chan struct{}, 100), ready: make(chan struct{})}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = New(Options{Cluster: "c1", Client: client, Canary: time.Hour, Logger: slog.New(slog.DiscardHandler)}).Run(ctx, recorder)
	}()
	<-recorder.edits
	return recorder, func() { cancel(); <-ended }
}

// BenchmarkRead is from the start of a registry to its first edit.
func BenchmarkRead(b *testing.B) {
	server := newLargeServer(b, 5000)
	b.ReportAllocs()
	for b.Loop() {
		_, stop := read(b, server)
		stop()
	}
}

// BenchmarkWatchEvent is from an event of a watch to its edit.
func BenchmarkWatchEvent(b *testing.B) {
	server := newLargeServer(b, 1000)
	var events [][]byte
	for round := range 100 {
		events = append(events, append(encoded(b, map[string]any{"type": "MODIFIED", "object": versioned("s7", 7, round+1)}), '\n'))
	}
	recorder, stop := read(b, server)
	defer stop()
	<-recorder.ready
	b.ReportAllocs()
	round := 0
	for b.Loop() {
		server.watch <- events[round%len(events)]
		<-recorder.edits
		round++
	}
}
