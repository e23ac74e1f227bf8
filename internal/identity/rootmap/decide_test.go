package rootmap

import (
	"testing"

	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// TestU08WhatIsDoneAboutANamespace, by what is there and who wrote it.
func TestU08WhatIsDoneAboutANamespace(t *testing.T) {
	const roots = "new roots"
	ours := found{mark: digest("old"), digest: digest("old")}
	current := found{mark: digest(roots), digest: digest(roots)}
	istiods := found{digest: digest("roots of istiod")}
	taken := found{mark: digest("old"), digest: digest("roots of istiod")}
	same := found{digest: digest(roots)}
	for name, c := range map[string]struct {
		space     listwatch.Namespace
		exists    bool
		found     *found
		content   string
		overwrite bool
		want      action
	}{
		"no ConfigMap":                {listwatch.Namespace{Name: "shop"}, true, nil, roots, false, create},
		"of the hub, old":             {listwatch.Namespace{Name: "shop"}, true, &ours, roots, false, update},
		"of the hub, current":         {listwatch.Namespace{Name: "shop"}, true, &current, roots, true, nothing},
		"of istiod":                   {listwatch.Namespace{Name: "shop"}, true, &istiods, roots, false, leave},
		"of istiod, to be replaced":   {listwatch.Namespace{Name: "shop"}, true, &istiods, roots, true, overwrite},
		"istiod took it over":         {listwatch.Namespace{Name: "shop"}, true, &taken, roots, false, leave},
		"of istiod, the same content": {listwatch.Namespace{Name: "shop"}, true, &same, roots, false, nothing},
		"no roots are known":          {listwatch.Namespace{Name: "shop"}, true, nil, "", true, nothing},
		"the namespace is deleted":    {listwatch.Namespace{}, false, &ours, roots, true, nothing},
		"the namespace ends":          {listwatch.Namespace{Name: "shop", Ending: true}, true, nil, roots, true, nothing},
		"a namespace of Kubernetes":   {listwatch.Namespace{Name: "kube-system"}, true, nil, roots, true, nothing},
	} {
		m := found{}
		if c.found != nil {
			m = *c.found
		}
		if got := decide(c.space, c.exists, m, c.found != nil, c.content, c.overwrite); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
