package consul

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// WorkloadsSection says how workloads of a datacenter prove who they are, and which account
// each of them is. Without it, what Consul knows proves nothing.
type WorkloadsSection struct {
	Tokens       bool `yaml:"tokens"`       // by a token that is for one service or role
	Certificates bool `yaml:"certificates"` // by a leaf certificate of Connect
	// Namespace is that of services without an entry in Accounts; their account has the name
	// of the service. Empty: the namespace of the datacenter's services.
	Namespace string         `yaml:"namespace"`
	Accounts  []AccountEntry `yaml:"accounts"`
}

// AccountEntry is the service account of a service, or of the tokens that have a role.
type AccountEntry struct {
	Service        string `yaml:"service"`
	Role           string `yaml:"role"`
	Namespace      string `yaml:"namespace"`
	ServiceAccount string `yaml:"serviceAccount"`
}

// Account is a service account of a namespace.
type Account struct{ Namespace, Name string }

func (a Account) String() string { return a.Namespace + "/" + a.Name }

// accounts tell which account a service or role is.
type accounts struct {
	namespace string // of services without an entry; empty: such a service is not a workload of the mesh
	services  map[string]Account
	roles     map[string]Account
}

// maxAccounts bounds the entries of one datacenter.
const maxAccounts = 10_000

// accounts reads the section; nil for nil. The namespace is that of all services.
func (s *WorkloadsSection) accounts(namespace string) (*accounts, error) {
	if s == nil {
		return nil, nil
	}
	all := &accounts{namespace: cmp.Or(s.Namespace, namespace), services: map[string]Account{}, roles: map[string]Account{}}
	switch {
	case !s.Tokens && !s.Certificates:
		return nil, errors.New("consul.workloads: set tokens or certificates, else no workload proves anything")
	case all.namespace != "" && !isLabel(all.namespace):
		return nil, errors.New("consul.workloads.namespace: must be a DNS label in lower case")
	case len(s.Accounts) > maxAccounts:
		return nil, fmt.Errorf("consul.workloads.accounts: has more than %d entries", maxAccounts)
	}
	for i, e := range s.Accounts {
		if err := all.add(e); err != nil {
			return nil, fmt.Errorf("consul.workloads.accounts[%d]: %w", i, err)
		}
	}
	return all, nil
}

func (a *accounts) add(e AccountEntry) error {
	to, name := a.services, e.Service
	if e.Role != "" {
		to, name = a.roles, e.Role
	}
	account := Account{Namespace: cmp.Or(e.Namespace, a.namespace), Name: cmp.Or(e.ServiceAccount, name)}
	_, twice := to[name]
	switch {
	case (e.Service == "") == (e.Role == ""):
		return errors.New("must have either service or role")
	case twice:
		return fmt.Errorf("%s is there twice", quote(name))
	case !isLabel(account.Namespace):
		return errors.New("namespace: must be a DNS label in lower case")
	case !isAccount(account.Name):
		return errors.New("serviceAccount: must have a to z, 0 to 9, '-' and '.', with a letter or digit at both ends; set it where the name of the service or role is no such name")
	}
	to[name] = account
	return nil
}

// isAccount tells the name of a service account.
func isAccount(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return len(name) <= 253
}

// service is the account of a service of the datacenter; false: it has none.
func (a *accounts) service(name string) (Account, bool) {
	if a == nil {
		return Account{}, false
	}
	if found, ok := a.services[name]; ok {
		return found, true
	}
	return Account{Namespace: a.namespace, Name: name}, a.namespace != "" && isLabel(name)
}
