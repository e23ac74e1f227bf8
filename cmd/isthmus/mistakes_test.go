package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

// Mistakes that people make on the command line are named, with what is meant.
func TestMistakesAreNamedWithWhatToDo(t *testing.T) {
	at := atHub(t)
	tlsOnly := httptest.NewUnstartedServer(http.NotFoundHandler())
	tlsOnly.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsOnly.StartTLS()
	t.Cleanup(tlsOnly.Close)
	folder := t.TempDir()
	if err := os.Symlink("/etc/hostname", filepath.Join(folder, "one.yaml")); err != nil {
		t.Fatal(err)
	}
	timeout := write(t, filepath.Join(t.TempDir(), "timeout.yaml"), `{apiVersion: networking.istio.io/v1, kind: VirtualService,
metadata: {name: a, namespace: shop}, spec: {hosts: [a], http: [{timeout: 5 s, route: [{destination: {host: a}}]}]}}`)
	types := write(t, filepath.Join(t.TempDir(), "types.yaml"), `{apiVersion: networking.istio.io/v1, kind: VirtualService,
metadata: {name: a, namespace: shop}, spec: {hosts: a, http: [{route: [{destination: {host: a}}]}]}}`)
	core := write(t, filepath.Join(t.TempDir(), "core.yaml"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
	for line, want := range map[string]struct {
		code int
		text string
	}{
		"cluster dettach c1":      {cmdutil.ExitUsage, `unknown command "dettach" of "isthmus cluster" (did you mean "detach"?)`},
		"ca rotat":                {cmdutil.ExitUsage, `did you mean "rotate"?`},
		"apply web.yaml":          {cmdutil.ExitUsage, "name files with -f"},
		"apply -f a --wait acked": {cmdutil.ExitUsage, `accepts no argument "acked"; if it is the value of --wait, write --wait=acked`}, // U87
		"get vs --namespcae shop": {cmdutil.ExitUsage, `unknown flag: --namespcae (did you mean "--namespace"?)`},
		"get vs -A -l team=checkout": {
			cmdutil.ExitDone,
			`there are no virtualservices.networking.istio.io with labels that match "team=checkout"`,
		},
		"delete svc hello":                        {cmdutil.ExitUsage, "services are a view of the hub and cannot be deleted"},
		"apply -f " + folder:                      {cmdutil.ExitFailed, "one.yaml is a symbolic link that leads out of the folder"},
		"apply -f " + timeout:                     {cmdutil.ExitFailed, "spec.http[0].timeout: must be a valid duration"},
		"apply -f " + types:                       {cmdutil.ExitFailed, "spec.hosts: must be of type array, not string"},
		"apply -f " + core:                        {cmdutil.ExitFailed, "objects of other kinds belong in a Kubernetes cluster"},
		"get vs --server unix:" + at.dir + "/xds": {cmdutil.ExitFailed, "use that of --graphql-addr"},
		"get vs --server http://" + tlsOnly.Listener.Addr().String(): {cmdutil.ExitFailed, "use https:// in --server"},
	} {
		code, _, errText := command(t, strings.Fields(line)...)
		if code != want.code || !strings.Contains(errText, want.text) {
			t.Errorf("%s: exit %d with %s", line, code, errText)
		}
	}
}

// The third part of a node ID names a proxy wherever a proxy is named, if it is
// that of one proxy, and with the cluster before it if not.
func TestProxiesAreFoundByTheirShortName(t *testing.T) {
	s := &stage{t: t, hub: atHub(t), proxies: map[string]*actor{}}
	s.do("web-1 connects")
	for _, line := range []string{"proxy status web-1.shop", "describe proxy web-1.shop", "get proxies web-1.shop"} {
		if out := mustRun(t, strings.Fields(line)...); !strings.Contains(out, nodeOf("web-1")) {
			t.Errorf("%s: %s", line, out)
		}
	}
	if code, _, errText := command(t, "proxy", "status", "web-2.shop"); code != cmdutil.ExitFailed ||
		!strings.Contains(errText, `proxies "web-2.shop" not found`) {
		t.Errorf("exit %d: %s", code, errText)
	}
}

// Objects that are not part of a resource have no count of proxies, rather than a
// wrong one; a revision with such an object can be waited for.
func TestStatusIsUnknownWhereProxiesAreNotCounted(t *testing.T) {
	s := &stage{t: t, hub: atHub(t), proxies: map[string]*actor{}}
	s.do("web-1 connects")
	mustRun(t, "apply", "-f", write(t, filepath.Join(t.TempDir(), "sidecar.yaml"), `apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: imports, namespace: shop}
spec: {egress: [{hosts: ["default/hello.default.svc.cluster.local"]}]}
`))
	if out := mustRun(t, "get", "sidecars", "-n", "shop"); strings.Contains(out, "acked") {
		t.Errorf("proxies are counted: %s", out)
	}
	if code, _, errText := command(t, "wait", "sidecar/imports", "-n", "shop"); code != cmdutil.ExitFailed ||
		!strings.Contains(errText, "proxies are not counted for sidecar.networking.istio.io/shop/imports") {
		t.Errorf("exit %d: %s", code, errText)
	}
	mustRun(t, "wait", "--revision", "last")
}
