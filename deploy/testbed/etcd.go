package testbed

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

// EtcdOptions say how an etcd server is run.
type EtcdOptions struct {
	Name      string     // Default etcd.
	Namespace *Namespace // Nil is the network of the test.
	Address   netip.Addr // Default the namespace's first address, else 127.0.0.1.
	TLS       *Authority // Non-nil: TLS, and clients need a certificate of this authority.
	ExtraArgs []string   // Later ones win over those of the testbed.
}

// Etcd is an etcd server of one member. Its data outlives Kill and Restart.
type Etcd struct {
	*Process
	URL string
	t   testing.TB
	dir string
}

// StartEtcd runs an etcd server and returns when it is healthy.
func StartEtcd(t testing.TB, options EtcdOptions) *Etcd {
	t.Helper()
	program := locate(t, "etcd")
	if options.Name == "" {
		options.Name = "etcd"
	}
	at := options.Namespace.place(options.Address)
	client := netip.AddrPortFrom(at, uint16(FreePort(t, options.Namespace, at)))
	peer := netip.AddrPortFrom(at, uint16(FreePort(t, options.Namespace, at)))
	e := &Etcd{t: t, dir: t.TempDir(), URL: "http://" + client.String()}
	tlsArgs, caller := e.secure(options.TLS, client)
	args := []string{
		"--name=default", "--data-dir=" + e.data(), "--log-level=warn", "--logger=zap",
		"--listen-client-urls=" + e.URL, "--advertise-client-urls=" + e.URL,
		"--listen-peer-urls=http://" + peer.String(), "--initial-advertise-peer-urls=http://" + peer.String(),
		"--initial-cluster=default=http://" + peer.String(),
	}
	args = append(append(args, tlsArgs...), options.ExtraArgs...)
	ready := probe(options.Namespace.Client(caller), e.URL+"/health")
	e.Process = StartProgram(t, ProgramOptions{
		Name: options.Name, Path: program, Args: args, Namespace: options.Namespace,
		Ready: ready,
	})
	return e
}

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
