package resource

import (
	"github.com/spf13/pflag"

	"isthmus.dev/isthmus/internal/cli/session"
)

// Scope are the flags that say where to look.
type Scope struct {
	Namespace string
	All       bool
	Given     bool // that namespace was
}

// Bind declares --namespace.
func (s *Scope) Bind(f *pflag.FlagSet) {
	f.StringVarP(&s.Namespace, "namespace", "n", "", "`NAMESPACE` of the objects (default: that of the context, or "+
		session.DefaultNamespace+")")
}

// In is the namespace to look in; nil: all of them.
func (s *Scope) In(of *session.Session) *string {
	switch {
	case s.All:
		return nil
	case s.Given:
		return &s.Namespace
	}
	return &of.Namespace
}
