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
