package testbed

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
)

// KubeOptions say how a kube-apiserver is run.
type KubeOptions struct {
	Name        string     // For logs; default kube.
	Namespace   *Namespace // Nil is the network of the test.
	Address     netip.Addr // Default the namespace's first address, else 127.0.0.1.
	Hosts       []string   // Further names and addresses of its certificate.
	Users       []KubeUser // Besides the administrator; they may do what RBAC grants.
	ServiceCIDR string     // Default 10.96.0.0/16.
	ExtraArgs   []string   // Such as --watch-cache=false; later ones win.
}

// A KubeUser logs in with a token.
type KubeUser struct {
	Name   string
	Groups []string
	Token  string // Made if empty.
}

// Kube is a kube-apiserver with an etcd of its own and no controllers: nothing
// empties a deleted Namespace, collects owned objects or makes EndpointSlices
// of selectors. Stop, Kill, Pause and Restart act on the API server; its data
// is in Etcd. It writes no endpoints of its own Service.
type Kube struct {
	*Process
	Etcd    *Etcd
	URL     string
	Address string // Host and port of URL.
	Admin   Access // Of the group system:masters, by client certificate.

	t         testing.TB
	authority *Authority
	accounts  *ecdsa.PrivateKey // signs tokens of service accounts
	users     map[string]KubeUser
	client    *http.Client
}

// StartKube runs etcd and kube-apiserver and returns when the API serves and
// the namespaces default and kube-system exist, after about 4 s.
func StartKube(t testing.TB, options KubeOptions) *Kube {
	t.Helper()
	program := locate(t, "kube-apiserver")
	if options.Name == "" {
		options.Name = "kube"
	}
	etcd := StartEtcd(t, EtcdOptions{Name: options.Name + "-etcd", Namespace: options.Namespace})
	at := options.Namespace.place(options.Address)
	address := netip.AddrPortFrom(at, uint16(FreePort(t, options.Namespace, at)))
	k := &Kube{
		t: t, Etcd: etcd, URL: "https://" + address.String(), Address: address.String(),
		authority: NewAuthority(t, options.Name+"-ca"), accounts: newKey(t), users: map[string]KubeUser{},
	}
	k.Admin = k.Certified("admin", "system:masters")
	k.client = options.Namespace.patientClient(k.Admin.tls(t))
	k.client.Transport.(*http.Transport).DisableKeepAlives = false
	t.Cleanup(k.client.CloseIdleConnections)
	args := append(k.files(options, at), kubeArgs(options, etcd.URL, address)...)
	k.Process = StartProgram(t, ProgramOptions{
		Name: options.Name + "-apiserver", Path: program, Args: append(args, options.ExtraArgs...), Env: []string{"GOGC=400"},
		Namespace: options.Namespace, Ready: func(ctx context.Context) error { return kubeReady(ctx, k.client, k.URL) },
	})
	return k
}

func kubeArgs(options KubeOptions, etcd string, address netip.AddrPort) []string {
	if options.ServiceCIDR == "" {
		options.ServiceCIDR = "10.96.0.0/16"
	}
	return []string{
		"--etcd-servers=" + etcd,
		"--bind-address=" + address.Addr().String(),
		fmt.Sprintf("--secure-port=%d", address.Port()),
		"--advertise-address=" + address.Addr().String(),
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + options.ServiceCIDR,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--authorization-mode=RBAC",
		"--disable-admission-plugins=ServiceAccount",
		"--profiling=false",
		"--enable-priority-and-fairness=false", // its objects take an eighth of the start, and its limits nothing here
	}
}

// files writes what the API server reads and returns the arguments that name it.
func (k *Kube) files(options KubeOptions, at netip.Addr) []string {
	k.t.Helper()
	dir := k.t.TempDir()
	hosts := append([]string{"localhost", "127.0.0.1", at.String(), "kubernetes.default.svc"}, options.Hosts...)
	cert, key := k.authority.Issue(Subject{Name: "kube-apiserver", Hosts: hosts})
	accounts := writeFile(k.t, dir, "accounts.key", encodeKey(k.t, k.accounts))
	var tokens strings.Builder
	for _, user := range options.Users {
		if user.Token == "" {
			user.Token = secret()
		}
		k.users[user.Name] = user
		fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", user.Token, user.Name, user.Name, strings.Join(user.Groups, ","))
	}
	args := []string{
		"--cert-dir=" + filepath.Join(dir, "certs"),
		"--client-ca-file=" + writeFile(k.t, dir, "ca.crt", k.authority.PEM),
		"--tls-cert-file=" + writeFile(k.t, dir, "server.crt", cert),
		"--tls-private-key-file=" + writeFile(k.t, dir, "server.key", key),
		"--service-account-key-file=" + accounts,
		"--service-account-signing-key-file=" + accounts,
	}
	if len(k.users) > 0 {
		args = append(args, "--token-auth-file="+writeFile(k.t, dir, "tokens.csv", []byte(tokens.String())))
	}
	return args
}

func kubeReady(ctx context.Context, client *http.Client, server string) error {
	client.CloseIdleConnections()
	for _, path := range []string{"/readyz", "/api/v1/namespaces/default", "/api/v1/namespaces/kube-system"} {
		if err := probe(client, server+path)(ctx); err != nil {
			return fmt.Errorf("getting %s: %w", path, err)
		}
	}
	return nil
}

// Replace makes another cluster appear at the same address with the same
// credentials: it is empty, and its kube-system namespace has another UID.
func (k *Kube) Replace() {
	k.t.Helper()
	k.Stop()
	k.Etcd.Wipe()
	k.Etcd.Restart()
	k.Restart()
}

// Kubeconfig returns that of the administrator, with inline data only.
func (k *Kube) Kubeconfig() []byte { return k.Admin.Kubeconfig() }

// User returns the access of one of the users that the options name.
func (k *Kube) User(name string) Access {
	k.t.Helper()
	user, known := k.users[name]
	if !known {
		k.t.Fatalf("finding the user %s: KubeOptions.Users does not have it", name)
	}
	return Access{URL: k.URL, CA: k.authority.PEM, Token: user.Token}
}

// Certified returns the access of a user with a new client certificate.
func (k *Kube) Certified(user string, groups ...string) Access {
	k.t.Helper()
	cert, key := k.authority.Issue(Subject{Name: user, Groups: groups})
	return Access{URL: k.URL, CA: k.authority.PEM, Cert: cert, Key: key}
}

func (a Access) tls(t testing.TB) *tls.Config {
	t.Helper()
	config, err := a.TLS()
	if err != nil {
		t.Fatalf("loading the credentials of %s: %v", a.URL, err)
	}
	return config
}
