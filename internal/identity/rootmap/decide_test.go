package rootmap

import "testing"

// TestU08WhatIsDoneAboutANamespace, by what is there and who wrote it.
func TestU08WhatIsDoneAboutANamespace(t *testing.T) {
	const roots = "new roots"
	ours := found{mark: digest("old"), digest: digest("old")}
	current := found{mark: digest(roots), digest: digest(roots)}
	istiods := found{digest: digest("roots of istiod")}
	taken := found{mark: digest("old"), digest: digest("roots of istiod")}
	same := found{digest: digest(roots)}
	for name, c := range map[string]struct {
		space     space
		exists    bool
		found     *found
		content   string
		overwrite bool
		want      action
	}{
		"no ConfigMap":                {space{name: "shop"}, true, nil, roots, false, create},
		"of the hub, old":             {space{name: "shop"}, true, &ours, roots, false, update},
		"of the hub, current":         {space{name: "shop"}, true, &current, roots, true, nothing},
		"of istiod":                   {space{name: "shop"}, true, &istiods, roots, false, leave},
		"of istiod, to be replaced":   {space{name: "shop"}, true, &istiods, roots, true, overwrite},
		"istiod took it over":         {space{name: "shop"}, true, &taken, roots, false, leave},
		"of istiod, the same content": {space{name: "shop"}, true, &same, roots, false, nothing},
		"no roots are known":          {space{name: "shop"}, true, nil, "", true, nothing},
		"the namespace is deleted":    {space{}, false, &ours, roots, true, nothing},
		"the namespace ends":          {space{name: "shop", ending: true}, true, nil, roots, true, nothing},
		"a namespace of Kubernetes":   {space{name: "kube-system"}, true, nil, roots, true, nothing},
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
