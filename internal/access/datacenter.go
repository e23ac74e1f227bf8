package access

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
)

// Datacenter is a Consul datacenter whose workloads prove who they are by what it knows.
type Datacenter interface {
	// Account asks for whom the datacenter made the token. The datacenter must be the one of
	// the UID. Its error is one of Refuse where the token is not good, one of NoAnswer where
	// the datacenter is silent, and any other where it cannot be asked.
	Account(ctx context.Context, uid string, token Token) (Account, error)
	// Leaf tells whose certificate of Connect it is, first of those presented. known is false
	// where it is not of this datacenter. It does not block.
	Leaf(uid string, presented []*x509.Certificate) (account Account, known bool, err error)
	// Roots verify the certificates of Connect; none: these prove nothing.
	Roots() []*x509.Certificate
}

// Refuse is the error of a proof that is definitely not good.
func Refuse(why string) error { return refusal{why} }

// NoAnswer is the error of a server that did not answer, or could not.
func NoAnswer(why string) error { return unanswered{why} }

// AttachDatacenter is Attach for a Consul datacenter.
func (t *Tokens) AttachDatacenter(id federation.ClusterID, d Datacenter) (detach func()) {
	return t.attach(id, consulTokens{d})
}

// datacenter is the cluster that made a token of Consul: the named one, else the only one.
// A token is never shown to a datacenter that may not be its own.
func (t *Tokens) datacenter(named federation.ClusterID) (federation.ClusterID, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []federation.ClusterID
	for id, by := range t.clients {
		if _, is := by.maker.(consulTokens); is {
			all = append(all, id)
		}
	}
	switch {
	case named != "" && slices.Contains(all, named):
		return named, nil
	case named != "":
		return "", refusal{fmt.Sprintf("the cluster %q is not a Consul datacenter whose tokens this hub accepts (consul.workloads.tokens)", named)}
	case len(all) == 1:
		return all[0], nil
	case len(all) == 0:
		return "", refusal{"this hub accepts the tokens of no Consul datacenter (consul.workloads.tokens)"}
	}
	return "", refusal{"the metadata clusterid is missing: it names which of several Consul datacenters made the token"}
}

// consulTokens are reviewed by a Consul datacenter.
type consulTokens struct{ of Datacenter }

// maxConsulToken is the longest token of Consul in bytes. Usually it is a UUID.
const maxConsulToken = 4096

var errNoConsulToken = errors.New("the token is not a token of Consul")

func (consulTokens) read(token Token, _ []string, _ time.Time) error {
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	if token == "" || len(token) > maxConsulToken || strings.ContainsFunc(string(token), odd) {
		return errNoConsulToken
	}
	return nil
}

// subject is the token itself, which claims nothing: a workload that shows a bad one again
// and again does not lock out others behind its address.
func (consulTokens) subject(token Token) string { return string(token) }

func (c consulTokens) review(ctx context.Context, uid string, token Token, _ []string) (Account, error) {
	if uid == "" {
		return Account{}, errors.New("the cluster's identity is not known yet")
	}
	found, err := c.of.Account(ctx, uid, token)
	found.datacenter = true
	return found, err
}
