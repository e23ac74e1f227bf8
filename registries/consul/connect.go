package consul

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"isthmus.dev/isthmus/internal/pemtext"
	"isthmus.dev/isthmus/internal/retry"
)

// defaultNamespace is the only one of Consul without Enterprise.
const defaultNamespace = "default"

// rootsPath is where Consul has the roots of Connect.
const rootsPath = "/v1/connect/ca/roots"

// maxRoots bounds the roots of a datacenter. While Connect rotates its CA, it has two.
const maxRoots = 16

// connectRoots verify the certificates of Connect of one Consul.
type connectRoots struct {
	identity      datacenterIdentity
	trustDomain   string
	roots         []*x509.Certificate
	intermediates []*x509.Certificate
}

// connectName is whose certificate of Connect it is.
type connectName struct{ trustDomain, namespace, datacenter, service string }

// parseConnectName reads spiffe://TRUSTDOMAIN/ns/NAMESPACE/dc/DATACENTER/svc/SERVICE, the only
// name of the certificate.
func parseConnectName(leaf *x509.Certificate) (connectName, bool) {
	if len(leaf.URIs) != 1 || leaf.URIs[0].Scheme != "spiffe" {
		return connectName{}, false
	}
	return parseConnectURI(leaf.URIs[0])
}

func parseConnectURI(uri *url.URL) (connectName, bool) {
	parts := strings.Split(uri.Path, "/")
	if len(parts) != 7 || parts[1] != "ns" || parts[3] != "dc" || parts[5] != "svc" || slices.Contains(parts[1:], "") {
		return connectName{}, false
	}
	return connectName{trustDomain: uri.Host, namespace: parts[2], datacenter: parts[4], service: parts[6]}, true
}

// verify checks that the roots signed the certificate for a client, and that it is valid now.
func (r *connectRoots) verify(presented []*x509.Certificate, now time.Time) error {
	leaf := presented[0]
	if leaf.IsCA || leaf.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != 0 {
		return errors.New("it is that of an authority")
	}
	o := x509.VerifyOptions{
		Roots: pemtext.Pool(r.roots), Intermediates: pemtext.Pool(slices.Concat(presented[1:], r.intermediates)),
		CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	_, err := leaf.Verify(o)
	return err
}

// rootList is what Consul says about its CA.
type rootList struct {
	TrustDomain string
	Roots       []struct {
		RootCert          string
		IntermediateCerts []string
	}
}

func parseRoots(said *rootList) (*connectRoots, error) {
	if said.TrustDomain == "" || len(said.Roots) == 0 || len(said.Roots) > maxRoots {
		return nil, fmt.Errorf("it lists %d roots of Connect, of the trust domain %s; there are 1 to %d, of one", len(said.Roots),
			quote(said.TrustDomain), maxRoots)
	}
	all := &connectRoots{trustDomain: said.TrustDomain}
	for _, root := range said.Roots {
		found, err := certificates(root.RootCert)
		if err != nil {
			return nil, err
		}
		all.roots = append(all.roots, found...)
		for _, text := range root.IntermediateCerts {
			between, err := certificates(text)
			if err != nil {
				return nil, err
			}
			all.intermediates = append(all.intermediates, between...)
		}
	}
	return all, nil
}

func certificates(text string) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for block := range pemtext.Blocks([]byte(text)) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !c.IsCA {
			return nil, errors.New("a root of Connect is not a certificate of an authority")
		}
		all = append(all, c)
	}
	if len(all) == 0 || len(all) > maxRoots {
		return nil, errors.New("a root of Connect has no certificate in PEM, or too many")
	}
	return all, nil
}

// follow keeps the roots of Connect up to date until the context ends. Roots that cannot be
// read change nothing.
func (w *Workloads) follow(ctx context.Context) {
	pauses := retry.Backoff{First: time.Second, Longest: 30 * time.Second}
	var index uint64
	trouble := ""
	for ctx.Err() == nil {
		next, err := w.readRoots(ctx, index)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			index, trouble = next, ""
			pauses.Reset()
			retry.Sleep(ctx, time.Second)
			continue
		case err.Error() != trouble:
			trouble = err.Error()
			w.registry.log.Warn("the roots of Connect cannot be read; those that were read before stay in use", slog.Any("err", err))
		}
		index = 0
		pauses.Wait(ctx)
	}
}

// readRoots takes the roots of a Consul that proves to be the one that was known before.
func (w *Workloads) readRoots(ctx context.Context, index uint64) (uint64, error) {
	var said rootList
	a, err := w.client.get(ctx, request{kind: CountRoots, path: rootsPath, index: index, wait: w.registry.o.Wait}, &said)
	if err != nil {
		return 0, err
	}
	roots, err := parseRoots(&said)
	if err != nil {
		return 0, err
	}
	if err := w.guard.prove(ctx, false); err != nil {
		return 0, err
	}
	roots.identity = w.guard.identity()
	before := w.roots.Swap(roots)
	if before == nil || !slices.EqualFunc(before.roots, roots.roots, (*x509.Certificate).Equal) {
		w.registry.log.Info("roots of Connect changed", slog.String("trustDomain", roots.trustDomain), slog.Int("roots", len(roots.roots)))
	}
	return a.index, nil
}

// watch follows the roots where certificates prove something.
func (w *Workloads) watch(ctx context.Context) {
	if w.Certificates {
		w.follow(ctx)
	}
}
