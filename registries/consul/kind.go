package consul

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/keyfile"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/provider"
)

// Section is what the config file and Cluster objects say about a Consul datacenter. An
// object names no file of the hub's machine.
type Section struct {
	Address    string            `yaml:"address"`
	Datacenter string            `yaml:"datacenter"`
	TokenFile  string            `yaml:"tokenFile" json:"-"`
	TLS        keyfile.ClientTLS `yaml:"tls" json:"-"`
	Hostname   string            `yaml:"hostname"`
	Namespace  string            `yaml:"namespace"`
	// InstancePort and ServicePort are those of Options.
	InstancePort string `yaml:"instancePort"`
	ServicePort  uint16 `yaml:"servicePort"`
	// Workloads is for the config file alone: it says whom the hub trusts.
	Workloads *WorkloadsSection `yaml:"workloads" json:"-"`
}

// Opener makes registries of Consul datacenters.
type Opener struct {
	provider.Host
	Following Following
}

// Kind is that of Consul datacenters.
func (o Opener) Kind() provider.Kind {
	return provider.Kind{Provider: federation.Consul, HasSection: true, Open: o.open, Access: accessOf, Look: o.preflight}
}

// accessOf leaves the datacenter as it is where none is given.
func accessOf(input map[string]any) (section map[string]any, credentials map[string]string) {
	section, credentials = map[string]any{"address": input["address"]}, map[string]string{}
	if datacenter, _ := input["datacenter"].(string); datacenter != "" {
		section["datacenter"] = datacenter
	}
	secure, _ := input["tls"].(map[string]any)
	for name, of := range map[string]map[string]any{"token": input, "ca": secure, "cert": secure, "key": secure} {
		credentials[name], _ = of[name].(string)
	}
	return section, credentials
}

func (o Opener) open(c provider.Cluster) (registries.Registry, error) {
	section, _ := c.Section.(*Section)
	if section == nil {
		section = &Section{}
	}
	if c.Kept != nil {
		with, err := keptAccess(*c.Kept)
		if err != nil {
			return nil, err
		}
		return o.follow(c, section, with)
	}
	secure, err := section.TLS.Config()
	if err != nil {
		return nil, fmt.Errorf("consul.tls: %w", err)
	}
	return o.follow(c, section, access{tokenOf(section.TokenFile), secure})
}

// access is what a Consul lets in.
type access struct {
	token func() (string, error) // nil: none
	tls   *tls.Config            // nil: the system's roots
}

func (o Opener) follow(c provider.Cluster, s *Section, with access) (registries.Registry, error) {
	r, err := New(Options{
		Limits: c.Limits, Used: o.Used(c.ID, c.Limits),
		Cluster: c.ID, Network: c.Network, Address: s.Address, Datacenter: s.Datacenter,
		Token: with.token, TLS: with.tls, Hostname: s.Hostname, Namespace: s.Namespace,
		InstancePort: s.InstancePort, ServicePort: s.ServicePort, Workloads: s.Workloads,
		Dial: o.Dial, Expect: c.Known.UID, Logger: o.Logger,
		Count: func(request string) { o.Count(federation.Consul, c.ID, request) },
	})
	if err != nil {
		return nil, err
	}
	return provider.Running{Active: r.Activity, Do: func(ctx context.Context, to registries.Sink) error {
		defer o.Ended(c.ID)
		if r.workloads == nil {
			return r.Run(ctx, to)
		}
		defer r.workloads.client.http.CloseIdleConnections()
		defer o.Following.Prove(c.ID, r.workloads)()
		return provider.Beside(ctx, r.workloads.watch, func(ctx context.Context) error { return r.Run(ctx, to) })
	}}, nil
}

// maxSecretFile bounds a token file in bytes.
const maxSecretFile = 64 << 10

// tokenOf reads the token file whenever it is asked; spaces around the token are
// not part of it. No file: no token.
func tokenOf(path string) func() (string, error) {
	if path == "" {
		return nil
	}
	return func() (string, error) {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("consul.tokenFile: %w", err)
		}
		data, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
		err = errors.Join(err, f.Close())
		token := strings.TrimSpace(string(data))
		switch {
		case err != nil:
			return "", fmt.Errorf("consul.tokenFile: %w", err)
		case token == "" || len(data) > maxSecretFile:
			return "", fmt.Errorf("consul.tokenFile: %s is empty or larger than 64 KiB", path)
		}
		return token, nil
	}
}

// keptAccess is that of a token and certificates that were kept.
func keptAccess(kept attach.Credentials) (access, error) {
	var a access
	value := func(name string) string { return kept.Value(name).Reveal() }
	if token := value("token"); token != "" {
		a.token = func() (string, error) { return token, nil }
	}
	ca, cert, key := value("ca"), value("cert"), value("key")
	if ca == "" && cert == "" && key == "" {
		return a, nil
	}
	a.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		a.tls.RootCAs = x509.NewCertPool()
		if !a.tls.RootCAs.AppendCertsFromPEM([]byte(ca)) {
			return a, errors.New("consul.tls.ca holds no certificate in PEM")
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
		if err != nil {
			return a, errors.New("consul.tls.cert and consul.tls.key must be a certificate and its key in PEM")
		}
		a.tls.Certificates = []tls.Certificate{pair}
	}
	return a, nil
}
