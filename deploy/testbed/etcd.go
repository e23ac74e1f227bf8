package testbed

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

// EtcdOptions say how an etcd server is run.
type EtcdOptions struct {
	Name      string     // Default etcd.
	Namespace *Namespace // Nil is the network of the test.
	Address   netip.Addr // Default the namespace's first address, else 127.0.0.1.
	TLS       *Authority // Non-nil: TLS, and clients need a certificate of this authority.
	ExtraArgs []string   // Later ones win over those of the testbed.
}

// Etcd is an etcd server: a cluster of its own, or a member of an EtcdCluster. Its data outlives Kill and Restart.
type Etcd struct {
	*Process
	URL     string
	t       testing.TB
	dir     string
	member  string
	tlsArgs []string
	web     *http.Client
}

// StartEtcd runs an etcd server and returns when it is healthy.
func StartEtcd(t testing.TB, options EtcdOptions) *Etcd {
	t.Helper()
	at := options.Namespace.place(options.Address)
	if options.Name == "" {
		options.Name = "etcd"
	}
	e := newEtcd(t, options, "default", netip.AddrPortFrom(at, uint16(FreePort(t, options.Namespace, at))))
	peer := "http://" + netip.AddrPortFrom(at, uint16(FreePort(t, options.Namespace, at))).String()
	e.Process = StartProgram(t, e.program(options, peer, "default="+peer))
	return e
}

// newEtcd is a server that does not run yet. member is its name in its cluster.
func newEtcd(t testing.TB, options EtcdOptions, member string, client netip.AddrPort) *Etcd {
	t.Helper()
	e := &Etcd{t: t, dir: t.TempDir(), member: member, URL: "http://" + client.String()}
	var caller *tls.Config
	e.tlsArgs, caller = e.secure(options.TLS, client)
	e.web = options.Namespace.patientClient(caller)
	return e
}

func (e *Etcd) program(options EtcdOptions, peer, cluster string) ProgramOptions {
	args := []string{
		"--name=" + e.member, "--data-dir=" + e.data(), "--log-level=warn", "--logger=zap",
		"--listen-client-urls=" + e.URL, "--advertise-client-urls=" + e.URL,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + cluster,
		// What a killed process wrote is with the kernel; a slow disk holds no test up.
		"--unsafe-no-fsync",
	}
	return ProgramOptions{
		Name: options.Name, Path: locate(e.t, toolset.Etcd), Args: slices.Concat(args, e.tlsArgs, options.ExtraArgs),
		Namespace: options.Namespace, Ready: e.healthy,
	}
}

func (e *Etcd) healthy(ctx context.Context) error { return probe(e.web, e.URL+"/health")(ctx) }

func (e *Etcd) data() string { return filepath.Join(e.dir, "data") }

// Wipe stops etcd and removes its data; Restart then starts an empty one.
func (e *Etcd) Wipe() {
	e.t.Helper()
	e.Kill()
	if err := os.RemoveAll(e.data()); err != nil {
		e.t.Fatalf("wiping etcd: %v", err)
	}
}

// Save kills etcd, copies its data, starts it again and returns the copy.
func (e *Etcd) Save() (backup string) {
	e.t.Helper()
	e.Kill()
	backup = filepath.Join(e.t.TempDir(), "backup")
	if err := os.CopyFS(backup, os.DirFS(e.data())); err != nil {
		e.t.Fatalf("saving the data of etcd: %v", err)
	}
	e.Restart()
	return backup
}

// Load stops etcd, brings the data of a backup back and starts it again. Its
// revisions go on from those of the backup.
func (e *Etcd) Load(backup string) {
	e.t.Helper()
	e.Wipe()
	if err := os.CopyFS(e.data(), os.DirFS(backup)); err != nil {
		e.t.Fatalf("loading the data of etcd: %v", err)
	}
	if err := os.Chmod(e.data(), 0o700); err != nil {
		e.t.Fatalf("loading the data of etcd: %v", err)
	}
	e.Restart()
}
