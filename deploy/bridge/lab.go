package bridge

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// StartLab makes two networks without a route to each other, n1 and n2, with a
// cluster each and no hub: what a reader of the guide bridges. The folder that it
// returns has the kubeconfigs, whose API servers the machine itself reaches, and the
// program `at`, which runs a command where a proxy or a workload is. All ends with
// the test.
func StartLab(t testing.TB) (folder string) {
	t.Helper()
	folder = testbed.ShortDir(t) // users of proxies read in it
	wan := testbed.NewNetwork(t, "wan", "192.0.2.0/24")
	at := "#!/bin/sh\n# at PLACE COMMAND runs a command there; envoy as the user that no sidecar captures.\n" +
		"place=$1; shift\ncase $place in\n"
	for _, plan := range plans[:2] {
		s := newSite(t, wan, plan.shaped(nil))
		s.startControl(t)
		way := testbed.StartProxyWith(t, testbed.ProxyOptions{Target: s.Kube.Address, TargetIn: s.control})
		reader := s.reader
		reader.Seconds = 90 * 24 * 3600 // attaching warns of what ends sooner
		access := testbed.Access{URL: "https://" + way.Addr(), CA: s.Kube.Admin.CA, Token: s.Kube.ServiceAccountToken(reader)}
		writeLab(t, filepath.Join(folder, s.Cluster+".kubeconfig"), string(access.Kubeconfig()), 0o600)
		for _, p := range s.proxies() {
			if p.namespace == "shop" {
				p.Capture(testbed.ProxyUID)
			}
			place := p.Account + "-" + s.Cluster
			at += fmt.Sprintf("%s) net=%s;;\n", place, p.Path())
		}
	}
	at += "*) echo \"at: there is no place $place\" >&2; exit 2;;\nesac\n"
	at += fmt.Sprintf(`if [ "$1" = envoy ]; then
  shift
  exec 3<%s # its folder may be closed to that user
  exec nsenter --net="$net" setpriv --reuid %[2]d --regid %[2]d --clear-groups /proc/self/fd/3 --disable-hot-restart "$@"
fi
exec nsenter --net="$net" "$@"
`, testbed.Tools(t).Envoy, testbed.ProxyUID)
	writeLab(t, filepath.Join(folder, "at"), at, 0o700)
	return folder
}

func writeLab(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
