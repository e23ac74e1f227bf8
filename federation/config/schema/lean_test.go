package schema

import (
	"os/exec"
	"strings"
	"testing"
)

// TestTheServerIsNotLinked: of Kubernetes only what merges and validates is part
// of the program.
func TestTheServerIsNotLinked(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	foreign := 0
	for _, p := range packages {
		if first, _, _ := strings.Cut(p, "/"); strings.Contains(first, ".") {
			foreign++
		}
		for _, heavy := range []string{
			"k8s.io/client-go", "k8s.io/apiserver/pkg/server", "k8s.io/apiserver/pkg/endpoints", "k8s.io/apiserver/pkg/registry",
			"k8s.io/apiserver/pkg/storage", "k8s.io/apiserver/pkg/admission", "k8s.io/apiextensions-apiserver/pkg/controller", "go.etcd.io",
		} {
			if strings.HasPrefix(p, heavy) {
				t.Errorf("%s is linked", p)
			}
		}
	}
	t.Logf("%d packages, %d of them not of the standard library", len(packages), foreign)
	if foreign > 320 {
		t.Errorf("%d packages from outside, more than the 320 that are enough", foreign)
	}
}
