package consul

import (
	"context"
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/consul/api"

	"isthmus.dev/isthmus/federation"
)

// Following is what else follows a datacenter while its registry runs.
type Following interface {
	// Prove lets workloads prove who they are by what the datacenter knows, until detach is called.
	Prove(id federation.ClusterID, w *Workloads) (detach func())
}

// Workloads tell who workloads are by what their datacenter knows. It may be used by several
// goroutines.
type Workloads struct {
	Tokens, Certificates bool // whether such a proof counts

	accounts *accounts
	client   *client // its own: watches of the catalog use all connections of the other
	guard    *guard
	roots    atomic.Pointer[connectRoots]
	registry *Registry
}

// reviewConnections are those to Consul for proofs of workloads.
const reviewConnections = 8

func newWorkloads(r *Registry, s *WorkloadsSection) *Workloads {
	o := r.o
	o.MaxPolls, o.Used = reviewConnections, func(federation.Usage) {}
	own := newClient(o, r.client.base)
	return &Workloads{
		Tokens: s.Tokens, Certificates: s.Certificates, accounts: r.accounts, client: own,
		guard: newGuard(own, r.expect), registry: r,
	}
}

// ProofError is why a proof does not count. Its text is fit for the workload.
type ProofError struct {
	Why string
	// Definite: the workload proves nothing. Else the datacenter cannot be asked.
	Definite bool
}

func (e *ProofError) Error() string { return e.Why }

func refuse(why string) error { return &ProofError{Why: why, Definite: true} }

// AccountOf asks the datacenter for whom it made the token, and when the token ends; the
// zero time: it does not. The datacenter must be the one of the UID. An error that is not a
// ProofError is that of a Consul that does not answer.
func (w *Workloads) AccountOf(ctx context.Context, uid, token string) (Account, time.Time, error) {
	if err := w.proves(ctx, uid); err != nil {
		return Account{}, time.Time{}, err
	}
	var self api.ACLToken
	_, err := w.client.try(ctx, request{kind: CountToken, path: tokenPath, timeout: requestTimeout}, token, &self)
	var r *refusal
	var off *noACL
	switch {
	case errors.As(err, &off):
		return Account{}, time.Time{}, &ProofError{Why: "its Consul has no ACLs, so that tokens prove nothing"}
	case errors.As(err, &r) && r.denied:
		return Account{}, time.Time{}, refuse("Consul does not accept the token")
	case err != nil:
		return Account{}, time.Time{}, err
	case subtle.ConstantTimeCompare([]byte(self.SecretID), []byte(token)) != 1:
		return Account{}, time.Time{}, &ProofError{Why: "its Consul answers about another token: something on the way drops or replaces it"}
	}
	account, err := w.accounts.ofToken(&self, w.guard.identity().datacenter)
	return account, ending(&self), err
}

// proves checks that the Consul that answers is the one of the UID.
func (w *Workloads) proves(ctx context.Context, uid string) error {
	known, err := parseIdentity(uid)
	if err != nil {
		return &ProofError{Why: "it is not known which Consul it is"}
	}
	err = w.guard.prove(ctx, false)
	var r *refusal
	switch {
	case errors.As(err, &r) && r.other, err == nil && !known.same(w.guard.identity()):
		return &ProofError{Why: "another Consul answers at its address"}
	case errors.As(err, &r):
		return &ProofError{Why: "its Consul does not tell which one it is"}
	}
	return err
}

func ending(self *api.ACLToken) time.Time {
	if self.ExpirationTime == nil {
		return time.Time{}
	}
	return *self.ExpirationTime
}

// The template of a token for one service.
const serviceTemplate = "builtin/service"

// ofToken is the one account that the token is for. A token without an identity proves
// nothing, whatever it may read.
func (a *accounts) ofToken(self *api.ACLToken, datacenter string) (Account, error) {
	switch {
	case self.AccessorID == anonymous:
		return Account{}, refuse("the token is Consul's anonymous one")
	case self.Namespace != "" && self.Namespace != defaultNamespace:
		return Account{}, refuse("the token is of a namespace of Consul other than default")
	}
	found := map[Account]bool{}
	for _, name := range servicesOf(self, datacenter) {
		account, mapped := a.service(name)
		if !mapped {
			return Account{}, refuse(fmt.Sprintf("the service %s of the token has no account; name one in consul.workloads.accounts", quote(name)))
		}
		found[account] = true
	}
	for _, role := range self.Roles {
		if account, mapped := a.roles[role.Name]; mapped {
			found[account] = true
		}
	}
	if len(found) > 1 {
		return Account{}, refuse("the token is for several accounts; use one for each workload")
	}
	for account := range found {
		return account, nil
	}
	return Account{}, refuse("the token is for no service of this datacenter (service identity), and has no role of consul.workloads.accounts")
}

// servicesOf are the services that the token is for, in the datacenter.
func servicesOf(self *api.ACLToken, datacenter string) []string {
	var names []string
	in := func(all []string) bool { return len(all) == 0 || slices.Contains(all, datacenter) }
	for _, s := range self.ServiceIdentities {
		if in(s.Datacenters) {
			names = append(names, s.ServiceName)
		}
	}
	for _, p := range self.TemplatedPolicies {
		if p.TemplateName == serviceTemplate && p.TemplateVariables != nil && in(p.Datacenters) {
			names = append(names, p.TemplateVariables.Name)
		}
	}
	return names
}

// Leaf tells whose certificate of Connect it is, the first of those presented. known is
// false where the certificate is not of this datacenter, which the UID names. It does not block.
func (w *Workloads) Leaf(uid string, presented []*x509.Certificate) (account Account, known bool, err error) {
	roots := w.roots.Load()
	if !w.Certificates || roots == nil || len(presented) == 0 {
		return Account{}, false, nil
	}
	name, is := parseConnectName(presented[0])
	if !is || name.trustDomain != roots.trustDomain || name.datacenter != roots.identity.datacenter {
		return Account{}, false, nil
	}
	of, err := parseIdentity(uid)
	if err != nil || !of.same(roots.identity) {
		return Account{}, true, errors.New("its roots are those of another Consul than the one that is attached")
	}
	if err := roots.verify(presented, time.Now()); err != nil {
		return Account{}, true, err
	}
	account, mapped := w.accounts.service(name.service)
	switch {
	case name.namespace != defaultNamespace:
		return Account{}, true, errors.New("it is of a namespace of Consul other than default")
	case !mapped:
		return Account{}, true, fmt.Errorf("its service %s has no account; name one in consul.workloads.accounts", quote(name.service))
	}
	return account, true, nil
}

// Roots are those of Connect, as they were read last.
func (w *Workloads) Roots() []*x509.Certificate {
	if roots := w.roots.Load(); roots != nil {
		return roots.roots
	}
	return nil
}
