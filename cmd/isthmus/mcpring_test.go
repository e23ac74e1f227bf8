package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// ringEntry is a ServiceEntry without addresses, so that the hub gives its host one.
const ringEntry = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %s, namespace: shop}
spec: {hosts: [%s], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: %s}]}
`

// ringView is what a hub of a ring has.
type ringView struct {
	objects  []string // NAME SOURCE
	services []string // HOSTNAME VIPS ENDPOINTS of those in the namespace shop
}

func (h *hubUnderTest) ringView() (v ringView, err error) {
	var answer struct {
		ConfigObjects struct {
			Nodes []struct{ Name, SourceName string }
		}
		Services struct {
			Nodes []struct {
				Hostname    string
				ClusterVIPs []struct{ Addresses []string }
				Endpoints   struct{ Nodes []struct{ Address string } }
			}
		}
	}
	err = h.query(`{configObjects(first: 500, filter: {kind: "ServiceEntry"}) {nodes {name sourceName}}
		services(first: 100) {nodes {hostname clusterVIPs {addresses} endpoints(first: 20) {nodes {address}}}}}`, &answer)
	for _, o := range answer.ConfigObjects.Nodes {
		v.objects = append(v.objects, o.Name+" "+o.SourceName)
	}
	for _, s := range answer.Services.Nodes {
		v.services = append(v.services, fmt.Sprint(s.Hostname, s.ClusterVIPs, s.Endpoints.Nodes))
	}
	slices.Sort(v.objects)
	slices.Sort(v.services)
	return v, err
}

// endpointsOf are the addresses of the host's endpoints; nil: there is no such service.
func (h *hubUnderTest) endpointsOf(host string) (found []string, err error) {
	var answer struct {
		Service *struct {
			Endpoints struct{ Nodes []struct{ Address string } }
		}
	}
	err = h.query(fmt.Sprintf(`{service(hostname: %q, namespace: "shop") {endpoints(first: 100) {nodes {address}}}}`, host), &answer)
	if answer.Service != nil {
		found = []string{}
		for _, e := range answer.Service.Endpoints.Nodes {
			found = append(found, e.Address)
		}
	}
	return found, err
}

func (h *hubUnderTest) awaitEndpoints(t *testing.T, host string, want ...string) {
	t.Helper()
	h.await(t, "the endpoints of "+host, func() error {
		got, err := h.endpointsOf(host)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("they are %v, want %v", got, want)
		}
		return err
	})
}

// TestM15ThreeHubsInARing: each hub reads the next one. Each has what its neighbour's own
// configuration says and nothing from further away; a host that two of them have stays that of the
// hub's own; what is deleted at its hub is gone at the reader; and nothing else changes or grows
// meanwhile, names and virtual addresses neither.
func TestM15ThreeHubsInARing(t *testing.T) {
	t.Parallel()
	dirs := []string{shortDir(t), shortDir(t), shortDir(t)}
	hubs := make([]*hubUnderTest, len(dirs))
	for i, dir := range dirs {
		hubs[i] = startHubIn(t, dir, "--config", fileOf(t, "mcp: {clients: [\"*\"], servers: [{name: peer, address: %q, delta: %t}]}\n",
			"unix:"+dirs[(i+1)%len(dirs)]+"/xds", i == 0))
	}
	for i, h := range hubs {
		own := fmt.Sprintf("own-%d", i)
		for _, manifest := range []string{
			fmt.Sprintf(ringEntry, own, own+".example.com", fmt.Sprintf("192.0.2.%d", i+1)),
			fmt.Sprintf(ringEntry, "same", "same.example.com", fmt.Sprintf("192.0.2.%d", i+11)), // a name that all have
			fmt.Sprintf(ringEntry, fmt.Sprintf("host-%d", i), "host.example.com", fmt.Sprintf("192.0.2.%d", i+21)),
		} {
			if wrong := h.applied(t, manifest); wrong != "" {
				t.Fatal(wrong)
			}
		}
	}
	views := make([]ringView, len(hubs))
	awaitNext := func(i int) {
		next := (i + 1) % len(hubs)
		hubs[i].awaitEndpoints(t, fmt.Sprintf("own-%d.example.com", next), fmt.Sprintf("192.0.2.%d", next+1))
		hubs[i].awaitEndpoints(t, "same.example.com", fmt.Sprintf("192.0.2.%d", i+11))
		hubs[i].await(t, "all objects of the next hub", func() (err error) {
			views[i], err = hubs[i].ringView()
			if err != nil {
				return err
			}
			want := map[string]bool{
				fmt.Sprintf("own-%d ETCD", i): true, "same ETCD": true, fmt.Sprintf("host-%d ETCD", i): true,
				fmt.Sprintf("own-%d MCP peer", next): true, fmt.Sprintf("host-%d MCP peer", next): true,
			}
			entries := 0 // of the services of the next hub's clusters
			for _, o := range views[i].objects {
				if strings.HasPrefix(o, "isthmus-") {
					entries++
				} else if !want[o] {
					t.Fatalf("hub %d has %s, and in all %q", i, o, views[i].objects)
				}
				delete(want, o)
			}
			if at := slices.IndexFunc(views[i].services, func(s string) bool { return strings.Contains(s, "[] ") }); at >= 0 {
				return fmt.Errorf("hub %d has no virtual address yet: %s", i, views[i].services[at])
			}
			if len(want) > 0 || entries != 2 {
				return fmt.Errorf("hub %d lacks %v, and has %d entries of services", i, slices.Sorted(maps.Keys(want)), entries)
			}
			return nil
		})
	}
	for i := range hubs {
		awaitNext(i)
	}
	before := slices.Clone(views)
	for round := range 3 { // an echo would come back with one of them
		passing := fmt.Sprintf("passing-%d", round)
		manifest := fmt.Sprintf(ringEntry, passing, passing+".example.com", "192.0.2.99")
		if wrong := hubs[0].applied(t, manifest); wrong != "" {
			t.Fatal(wrong)
		}
		hubs[2].awaitEndpoints(t, passing+".example.com", "192.0.2.99")
		if got, err := hubs[1].endpointsOf(passing + ".example.com"); err != nil || got != nil {
			t.Errorf("what hub 2 read from hub 0 is at hub 1: %v, %v", got, err)
		}
		var gone struct {
			Delete struct{ UserErrors []struct{ Message string } }
		}
		err := hubs[0].query(fmt.Sprintf(`mutation {delete(input: {objects: [
			{group: "networking.istio.io", kind: "ServiceEntry", namespace: "shop", name: %q}]}) {userErrors {message}}}`, passing), &gone)
		if err != nil || len(gone.Delete.UserErrors) > 0 {
			t.Fatalf("deleting: %+v, %v", gone, err)
		}
		hubs[2].await(t, "the deletion", func() error {
			got, err := hubs[2].endpointsOf(passing + ".example.com")
			if err == nil && got != nil {
				err = fmt.Errorf("there is %v", got)
			}
			return err
		})
	}
	for i, h := range hubs {
		awaitNext(i)
		if !slices.Equal(views[i].objects, before[i].objects) || !slices.Equal(views[i].services, before[i].services) {
			t.Errorf("hub %d has\n%q\nand had before\n%q", i, views[i], before[i])
		}
		if s, err := h.source("MCP peer"); err != nil || len(s.Problems) > 1 {
			t.Errorf("the source of hub %d is %+v, %v", i, s, err)
		}
	}
}
