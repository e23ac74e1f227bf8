package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	security "istio.io/api/security/v1alpha1"
)

// memory is a figure of /proc/PID/status in MiB.
func (p *secureProgram) memory(t *testing.T, figure string) int {
	t.Helper()
	return memoryOf(t, p.process, &p.log, figure)
}

func memoryOf(t *testing.T, hub *exec.Cmd, log *Text, figure string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", hub.Process.Pid))
	if err != nil {
		t.Fatalf("the hub is gone: %v\n%s", err, log.String())
	}
	_, after, _ := strings.Cut(string(text), figure+":")
	kib := 0
	if _, err := fmt.Sscan(after, &kib); err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

// TestR02MemoryOfAnonymousCallers: 80 anonymous connections ask for a certificate with messages of nearly 4 MiB, which
// would be more than 300 MiB at once.
func TestR02MemoryOfAnonymousCallers(t *testing.T) {
	p := startSecureProgram(t, "true", "")
	before := p.memory(t, "VmRSS")
	request := &security.IstioCertificateRequest{Csr: strings.Repeat("x", 4<<20-1024)}
	var all sync.WaitGroup
	for range 80 {
		all.Go(func() {
			conn, err := grpc.NewClient(p.xdsAddr, grpc.WithTransportCredentials(credentials.NewTLS(p.anonymous())))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			code := codes.Unavailable
			for code == codes.Unavailable { // a machine may be too slow for 80 handshakes within the hub's limits
				_, err = security.NewIstioCertificateServiceClient(conn).CreateCertificate(t.Context(), request, grpc.WaitForReady(true))
				code = status.Code(err)
			}
			if code != codes.Unauthenticated {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	if grown := p.memory(t, "VmHWM") - before; grown > 100 {
		t.Errorf("the memory of the hub grew by %d MiB from %d", grown, before)
	}
}

// saidOfCallers counts the lines of the log. Those of etcd are about a slow disk.
func (p *secureProgram) saidOfCallers() int {
	text := p.log.String()
	return strings.Count(text, "\n") - strings.Count(text, "etcd: ")
}

// TestR12AnonymousCallersDoNotFloodTheLog: 200 streams and calls without a proof leave a few lines.
func TestR12AnonymousCallersDoNotFloodTheLog(t *testing.T) {
	p := startSecureProgram(t, "true", "")
	conn, err := grpc.NewClient(p.xdsAddr, grpc.WithTransportCredentials(credentials.NewTLS(p.anonymous())))
	must(t, err)
	defer conn.Close()
	before := p.saidOfCallers()
	for range 100 {
		_, err := security.NewIstioCertificateServiceClient(conn).CreateCertificate(t.Context(), &security.IstioCertificateRequest{})
		if status.Code(err) != codes.Unauthenticated {
			t.Fatalf("a call: %v", err)
		}
		c := p.open(t, conn)
		if _, err := c.Receive(t.Context()); status.Code(err) != codes.Unauthenticated {
			t.Fatalf("a stream: %v", err)
		}
	}
	if n := p.saidOfCallers() - before; n == 0 || n > 20 {
		t.Errorf("the log has %d lines more:\n%s", n, p.log.String())
	}
}
