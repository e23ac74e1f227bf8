package node

import "testing"

// A scope without a row would be of no service, and without statistics, logs and patches.
func TestEveryScopeHasARow(t *testing.T) {
	t.Parallel()
	named := map[string]Scope{}
	for s := ScopeStatic; s < endOfScopes; s++ {
		name := s.String()
		if other, taken := named[name]; name == "" || taken {
			t.Errorf("the row of scope %d has the name %q, which is empty or that of scope %d", s, name, other)
		}
		named[name] = s
	}
	if name := endOfScopes.String(); name != "" {
		t.Errorf("%d, which is not a scope, is called %q", endOfScopes, name)
	}
}
