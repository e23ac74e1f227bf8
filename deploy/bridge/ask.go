package bridge

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// echo is the workload of one pod, which says who it is.
func (s *Site) echo(t testing.TB, pod int) {
	t.Helper()
	testbed.StartEcho(t, testbed.EchoOptions{
		Name: s.Cluster + "/" + podName(pod), Namespace: s.Workload.Namespace,
		Address: netip.MustParseAddr(s.Workload.Addresses[pod]), HTTP: []int{Port},
	})
}

// Answer is who answered a request, and what it was told of the caller.
type Answer struct {
	Cluster, Pod string
	Caller       string // the header with what the certificate proved
}

// anywhere is where callers send requests: the sidecar takes them, and decides by
// the host.
const anywhere = "198.51.100.1"

// Ask sends a request of the site's caller to a service and returns who answered.
func (s *Site) Ask(host, path string) (Answer, error) {
	response := s.Caller.Get("http://"+net.JoinHostPort(anywhere, strconv.Itoa(Port))+path, "Host", host)
	if response.Err != nil {
		return Answer{}, response.Err
	}
	if response.Status != 200 {
		return Answer{}, fmt.Errorf("status %d: %.200s", response.Status, response.Body)
	}
	var echo testbed.EchoAnswer
	if err := json.Unmarshal(response.Body, &echo); err != nil {
		return Answer{}, err
	}
	cluster, pod, _ := strings.Cut(echo.Name, "/")
	return Answer{Cluster: cluster, Pod: pod, Caller: echo.Header.Get("X-Forwarded-Client-Cert")}, nil
}

// Identity is the SPIFFE ID of the caller, without the rest of the header.
func (a Answer) Identity() string {
	for part := range strings.SplitSeq(a.Caller, ";") {
		if id, ok := strings.CutPrefix(part, "URI="); ok {
			return id
		}
	}
	return "nobody"
}

// Endpoints are the addresses that a sidecar has for a service, with their ports.
func (p *Pod) Endpoints(host string) ([]string, error) {
	body, err := p.Envoy.Admin("/clusters?format=json")
	if err != nil {
		return nil, err
	}
	var answer struct {
		ClusterStatuses []struct {
			Name         string
			HostStatuses []struct {
				Address struct {
					SocketAddress struct {
						Address   string
						PortValue int `json:"port_value"`
					} `json:"socket_address"`
				}
			} `json:"host_statuses"`
		} `json:"cluster_statuses"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	var all []string
	for _, c := range answer.ClusterStatuses {
		if c.Name != fmt.Sprintf("outbound|%d||%s", Port, host) {
			continue
		}
		for _, h := range c.HostStatuses {
			at := h.Address.SocketAddress
			all = append(all, net.JoinHostPort(at.Address, strconv.Itoa(at.PortValue)))
		}
	}
	return all, nil
}
