package docs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

// A readersMachine is where a test follows pages, as a reader would: in one shell, in a folder
// of its own, with the network and the system folders of a machine of its own.
type readersMachine struct {
	*testbed.Namespace
	dir       string
	steps     []step
	elsewhere []func(gone <-chan struct{}) // what happens while the reader waits, in order
}

func newMachine(t *testing.T) *readersMachine {
	t.Helper()
	m := &readersMachine{Namespace: testbed.NewNamespace(t, "machine"), dir: testbed.ShortDir(t)}
	for _, folder := range []string{"bin", "shims", "local", "lib", "work", "tmp"} {
		if err := os.Mkdir(filepath.Join(m.dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(m.dir, 0o755); err != nil { // other users run programs of it
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"work/bin": m.dir + "/bin", "bin/isthmus": binary.Path(t), "shims/isthmus": binary.Path(t),
		"work/deploy": must(filepath.Abs("../deploy")),
	} {
		if err := os.Symlink(target, filepath.Join(m.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	m.shim(t, "sudo", `exec "$@"`)
	m.shim(t, "make", `[ "$*" = build ] || { [ "$*" = run ] && exec bin/isthmus `+recipeOfRun(t)+"; }")
	return m
}

func (m *readersMachine) shim(t *testing.T, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, "shims", name), []byte("#!/bin/bash\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// systemFolders are /etc, /var/lib and /usr/local/bin as they are, but for what the shell and its programs write.
const systemFolders = `set -e
mount -t tmpfs none %[1]s/tmp
mkdir %[1]s/tmp/upper %[1]s/tmp/work
mount -t overlay overlay -o lowerdir=/etc,upperdir=%[1]s/tmp/upper,workdir=%[1]s/tmp/work /etc
mount --bind %[1]s/lib /var/lib
mount --bind %[1]s/local /usr/local/bin
set +e
`

// types has the reader type a command that the page does not have, and that has to succeed.
func (m *readersMachine) types(command string) {
	m.steps = append(m.steps, step{command: command + "\n"})
}

// reads has the reader do what a page says, from one heading to the next of these; "" is all.
func (m *readersMachine) reads(t *testing.T, page, from, until string) {
	t.Helper()
	text := read(t, page)
	if from != "" {
		_, after, found := strings.Cut(text, "\n"+from+"\n")
		if !found {
			t.Fatalf("%s has no %q", page, from)
		}
		text = after
	}
	if until != "" {
		before, _, found := strings.Cut(text, "\n"+until+"\n")
		if !found {
			t.Fatalf("%s has no %q", page, until)
		}
		text = before
	}
	found := steps(text)
	if len(found) == 0 {
		t.Fatalf("%s has nothing to do from %q until %q", page, from, until)
	}
	m.steps = append(m.steps, found...)
}

var (
	// runsOn are programs that do not end: the reader opens another terminal.
	runsOn = regexp.MustCompile(`(?m)^(?:make run|(?:bin/)?isthmus serve|isthmus query -f changes|envoy -c)\b(?:[^\n\\]|\\[\n -~])*$`)
	// serves are those that start a hub: the reader pressed Ctrl-C to end the one before.
	serves = regexp.MustCompile(`^(?:make run|(?:bin/)?isthmus serve)\b`)
	// asks are commands that a reader repeats until they succeed: the hub may have just started.
	asks = regexp.MustCompile(`(?m)^(?:(?:bin/)?isthmus (?:status|get|explain|describe|query|ca show|proxy config|cluster attach)|curl)\b` +
		`(?:[^\n<\\]|\\[\n -~])*$`)
)

const repeats = `leave() { kill $(jobs -p) $(cat $service /dev/null); wait; } 2>/dev/null
end_hub() { [ -z "$hub" ] || { kill $hub && wait $hub; } 2>/dev/null || true; }
again() {
  for i in $(seq 200); do
    eval "$1" >"$D/out" 2>&1 && { cat "$D/out"; return 0; }
    sleep 0.2
  done
  cat "$D/out"
  return 1
}
`

// do runs the steps, and reports those that fail or print something else than the page shows.
func (m *readersMachine) do(t *testing.T, private bool, env ...string) {
	t.Helper()
	tools := []string{filepath.Join(m.dir, "shims"), "/usr/local/bin"}
	for _, name := range []string{toolset.Envoy, toolset.Kubectl} {
		path, installed, err := toolset.Locate(name)
		if err != nil || !installed {
			t.Fatalf("there is no %s at %q: %v; run make tools", name, path, err)
		}
		tools = append(tools, filepath.Dir(path))
	}
	var script strings.Builder
	if private {
		fmt.Fprintf(&script, systemFolders+"service=/etc/isthmus.pid\n", m.dir)
	}
	fmt.Fprintf(&script, "D=%[1]s/tmp\nL=%[1]s/lib\ncd %[1]s/work\n%[2]s", m.dir, repeats)
	for i, s := range m.steps {
		command := runsOn.ReplaceAllStringFunc(s.command, func(line string) string {
			line += " >>" + m.logOf(i) + " 2>&1 &"
			if serves.MatchString(line) {
				line = "end_hub\n" + line + " hub=$!"
			}
			return line
		})
		command = asks.ReplaceAllStringFunc(command, func(line string) string {
			return "again '" + strings.ReplaceAll(line, "'", `'\''`) + "'"
		})
		fmt.Fprintf(&script, "set -e; trap 'echo; printf \"%[1]s%%d%[1]s\" 1; leave' EXIT\n%[2]strap - EXIT; set +e; printf '%[1]s%%d%[1]s' 0\n",
			endOfStep, command)
	}
	script.WriteString("leave\n")
	args := []string{write(t, filepath.Join(m.dir, "steps.sh"), []byte(script.String()))}
	path := "/bin/bash"
	if private {
		args, path = append([]string{"-m", path}, args...), must(exec.LookPath("unshare"))
	}
	reader := testbed.StartProgram(t, testbed.ProgramOptions{
		Name: "reader", Path: path, Args: args, Dir: m.dir, Namespace: m.Namespace,
		Env: append([]string{
			"PATH=" + strings.Join(append(tools, os.Getenv("PATH")), ":"), "XDG_CONFIG_HOME=" + m.dir,
			"HOME=" + m.dir, "ISTHMUS_SERVER=", "ISTHMUS_CONFIG=", "ISTHMUS_CONTEXT=",
		}, env...),
	})
	for _, happens := range m.elsewhere {
		happens(reader.Exited())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	select {
	case <-reader.Exited():
	case <-ctx.Done():
		t.Errorf("the steps do not end")
	}
	t.Cleanup(func() { m.showLogs(t) })
	parts := strings.Split(string(reader.Output()), endOfStep)
	for i, s := range m.steps {
		if 2*i+1 >= len(parts) {
			t.Fatalf("step %d is not reached: %s", i+1, s.command)
		}
		printed := parts[2*i]
		if s.shown && runsOn.MatchString(s.command) {
			printed += read(t, m.logOf(i))
		}
		if parts[2*i+1] != "0" {
			t.Fatalf("step %d fails: %s\n%s", i+1, s.command, printed)
		}
		if s.shown && !sameJSON(printed, s.prints) && !strings.Contains(versionless(printed), versionless(s.prints)) {
			t.Errorf("step %d: %s prints\n%s\nand the page shows\n%s", i+1, s.command, printed, s.prints)
		}
	}
}

// logOf is what a program that a step starts prints.
func (m *readersMachine) logOf(step int) string {
	return filepath.Join(m.dir, "lib", fmt.Sprintf("program%d.log", step))
}

// sameJSON compares two answers in JSON.
func sameJSON(got, want string) bool {
	var a, b any
	return json.Unmarshal([]byte(got), &a) == nil && json.Unmarshal([]byte(want), &b) == nil && reflect.DeepEqual(a, b)
}

// showLogs shows what programs in the background wrote, if the test has failed.
func (m *readersMachine) showLogs(t *testing.T) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(m.dir, "lib", "*.log"))
	if err != nil || !t.Failed() {
		return
	}
	for _, log := range logs {
		text := read(t, log)
		t.Logf("%s ends with\n%s", filepath.Base(log), text[max(0, len(text)-3000):])
	}
}

var versions = regexp.MustCompile(`(version|revision) [0-9a-z.+-]+|(isthmus) \S+ (runs)`)

func versionless(text string) string { return lasting(versions.ReplaceAllString(text, "$1$2 $3")) }

// systemctl does for the unit of the page what systemd would, and has systemd check it where it is installed.
const systemctl = `unit=/etc/systemd/system/isthmus.service
of() { sed -n "s/^$1=//p" $unit; }
end() { kill $(cat /etc/isthmus.pid); while kill -0 $(cat /etc/isthmus.pid) 2>/dev/null; do sleep 0.1; done; }
begin() {
  install -d -o $(of User) -m $(of StateDirectoryMode) /var/lib/$(of StateDirectory)
  setpriv --reuid $(of User) --regid $(of User) --init-groups $(of ExecStart) >>/var/lib/hub.log 2>&1 &
  echo $! >/etc/isthmus.pid
}
case "$1 $2" in
"daemon-reload ") ! command -v systemd-analyze >/dev/null || systemd-analyze verify $unit ;;
"enable --now" | "start isthmus") begin ;;
"disable --now" | "stop isthmus") end ;;
"restart isthmus") end && begin ;;
*) exit 1 ;;
esac`

// TestM19AServiceIsInstalledAndBackedUpAsInTheGuide follows the pages about a hub that runs as a
// service: its certificates, its user, its unit, a CA for workloads, backups and their restore. A
// Kubernetes cluster is attached, gets new credentials, is rebuilt, gets an alias, and is detached (U76).
func TestM19AServiceIsInstalledAndBackedUpAsInTheGuide(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.shim(t, "systemctl", systemctl)
	m.AddLocal("10.0.0.6")
	kube := testbed.StartKube(t, testbed.KubeOptions{Namespace: m.Namespace, Address: netip.MustParseAddr("10.0.0.6")})
	write(t, filepath.Join(m.dir, "work", "c1.kubeconfig"), kube.Kubeconfig())
	const settings = "apiVersion: isthmus.dev/v1\nkind: MeshSettings\nmetadata: {name: default}\nspec: {outboundTrafficPolicy: %s}\n"
	for file, value := range map[string]string{"first.yaml": "{mode: REGISTRY_ONLY}", "second.yaml": "{mode: ALLOW_ANY}"} {
		write(t, filepath.Join(m.dir, "work", file), fmt.Appendf(nil, settings, value))
	}
	m.reads(t, "install.md", "", "## Uninstall")
	m.types(`export ISTHMUS_SERVER=https://localhost:8080
export ISTHMUS_TLS_CA=$PWD/hub-ca.crt ISTHMUS_TLS_CERT=$PWD/me.crt ISTHMUS_TLS_KEY=$PWD/me.key`)
	m.reads(t, "troubleshooting.md", "## A cluster is FAILED", "## Two clusters cannot reach each other")
	m.managesCluster(t, kube)
	m.reads(t, "identity.md", "### Certificates from a CA of your own", "## Who may be which node")
	m.types("isthmus apply -f first.yaml\nisthmus ca show | grep -q cluster.local")
	m.reads(t, "operations.md", "## Back up and restore", "### Restore it")
	m.types("isthmus status\nisthmus apply -f second.yaml")
	m.reads(t, "operations.md", "### Restore it", "### With an external etcd")
	m.types("isthmus status\nisthmus get meshsettings default -o yaml | grep -q REGISTRY_ONLY\nisthmus describe cluster c1 | grep -q READY")
	m.reads(t, "operations.md", "### Keep manifests", "### Apply them to another hub")
	m.types("systemctl stop isthmus\nrm -r /var/lib/isthmus\nsystemctl start isthmus\nisthmus status")
	m.reads(t, "operations.md", "### Apply them to another hub", "## Upgrade")
	m.types("isthmus get meshsettings default -o yaml | grep -q REGISTRY_ONLY")
	m.reads(t, "install.md", "## Uninstall", "")
	m.types("for left in /etc/isthmus /var/lib/isthmus /usr/local/bin/isthmus; do if [ -e $left ]; then exit 1; fi; done")
	m.do(t, true)
}

// managesCluster has the reader attach the cluster of c1.kubeconfig, rotate its credentials, rebuild it, detach it by either command, and
// attach it again.
func (m *readersMachine) managesCluster(t *testing.T, kube *testbed.Kube) {
	t.Helper()
	const page, gone = "clusters.md", "again '! isthmus describe cluster c1'"
	m.typesThose(t, "## Attach a cluster", "c1.kubeconfig")
	m.reads(t, page, "## Look at a cluster", "## Rotate credentials")
	m.types(`credentials() {
  kubectl --kubeconfig c1.kubeconfig apply -f deploy/kubernetes/reader.yaml
  token=$(kubectl --kubeconfig c1.kubeconfig create token isthmus-reader -n isthmus)
  export KUBECONFIG=new.kubeconfig
  kubectl config view --raw --kubeconfig c1.kubeconfig > $KUBECONFIG
  user=$(kubectl config view -o jsonpath='{.users[0].name}')
  kubectl config delete-user $user
  kubectl config set-credentials $user --token=$token
  unset KUBECONFIG
}
credentials
sed 's/token: .*/token: nonsense/' new.kubeconfig > bad.kubeconfig`)
	m.typesThose(t, "## Rotate credentials", "new.kubeconfig")
	m.types("isthmus describe cluster c1 | grep READY\nif isthmus cluster rotate c1 --kubeconfig bad.kubeconfig; then exit 1; fi\nisthmus describe cluster c1 | grep READY")
	m.rebuilds(t, kube)
	m.reads(t, page, "## Detach a cluster", "## Confirm a cluster that you rebuilt")
	m.types(gone + "\nisthmus cluster attach c1 --kubeconfig c1.kubeconfig --network n1 --alias Kubernetes")
	m.types("isthmus cluster attach c2 --kubeconfig c1.kubeconfig --alias Kubernetes --dry-run 2>&1 | grep DUPLICATE_CLUSTER_ALIAS")
	m.types("isthmus delete clusters.isthmus.dev c1\n" + gone + "\nisthmus cluster attach c1 --kubeconfig c1.kubeconfig --network n1")
}

// rebuilds has the reader attach a cluster again that was rebuilt, and does not accept the credentials of the hub (U88).
func (m *readersMachine) rebuilds(t *testing.T, kube *testbed.Kube) {
	t.Helper()
	m.waits(t, "rebuilding", kube.Replace)
	m.types("again 'isthmus describe cluster c1 | grep STALE'\nisthmus cluster confirm c1 2>&1 | grep NOTHING_HELD")
	m.types("credentials\nisthmus cluster rotate c1 --kubeconfig new.kubeconfig 2>&1 | grep OTHER_CLUSTER")
	m.reads(t, "clusters-reference.md", "message then says that another cluster answers, and you can confirm it. Otherwise detach it and attach it again:",
		"The phase stays `HELD` until the known cluster answers again or you confirm the new one, even")
	m.types("isthmus describe cluster c1 | grep READY")
}

// startsHub has the reader start a hub for trying out, and wait until it is ready.
func (m *readersMachine) startsHub(args string) {
	m.types("isthmus serve --dev --data-dir run " + args)
	m.types("isthmus status")
}

// TestM19SymptomsAreFoundAsInTheGuide follows the pages for operators with the sample of two
// clusters and an Envoy: troubleshooting, authorization and drains. Requests fail for the reasons that
// the page tells apart (U78).
func TestM19SymptomsAreFoundAsInTheGuide(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.AddLocal("10.0.0.9")
	m.startsHub("")
	m.types(`cat > mesh.yaml <<'END'
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: reviews, namespace: shop}
spec:
  hosts: [reviews.shop.svc.cluster.local]
  ports: [{number: 9080, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.0.0.9, labels: {version: v1}}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews, namespace: shop}
spec:
  host: reviews.shop.svc.cluster.local
  subsets: [{name: v2, labels: {version: v2}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [reviews.shop.svc.cluster.local]
  http:
  - {match: [{uri: {prefix: /v1}}], route: [{destination: {host: reviews.shop.svc.cluster.local}}]}
  - {match: [{uri: {prefix: /v2}}], route: [{destination: {host: reviews.shop.svc.cluster.local, subset: v2}}]}
  - {match: [{uri: {prefix: /v3}}], route: [{destination: {host: reviews.shop.svc.cluster.local, subset: v3}}]}
END
isthmus apply -f mesh.yaml
isthmus proxy bootstrap --name web-1 --namespace shop --cluster-id c1 --ip 10.0.0.9 --labels app=web --hub 127.0.0.1:15010 \
  --http-proxy-port 15080 --no-identity --no-capture --dir web-1`)
	m.types("envoy -c web-1/envoy.yaml")
	envoy := m.logOf(len(m.steps) - 1)
	m.types("isthmus describe proxy web-1.shop | grep -q SYNCED")
	m.reads(t, "troubleshooting.md", "", "## A proxy does not connect")
	m.getsErrors(envoy)
	m.waitsForClusters()
	m.reads(t, "troubleshooting.md", "## A proxy gets no certificate", "## A cluster is HELD")
	m.reads(t, "authorization.md", "", "## Clusters with other trust domains")
	m.reads(t, "authorization.md", "## Authenticate end users", "")
	m.reads(t, "drain.md", "", "")
	m.do(t, false)
}

// getsErrors has the reader send requests that fail for each reason that the page names, and find the reason in the log of Envoy and by
// the commands of the page.
func (m *readersMachine) getsErrors(log string) {
	const host = "reviews.shop.svc.cluster.local"
	m.types("for path in reviews.shop:9080/v1 reviews.shop:9080/v2 reviews.shop:9080/v3 reviews.shop:9080/v4 nowhere.shop:9080/; do\n" +
		"  curl -s -x http://127.0.0.1:15080 http://$path | tee -a answers\ndone\n" +
		"grep 'no healthy upstream' answers\ngrep 'a subset \"v3\"' answers\ngrep 'no such service' answers")
	for _, want := range []string{
		"GET /v1 .* 503 URX,UF ", "GET /v2 .* 503 UH .*outbound.9080.v2.", "GET /v3 .* 503 - direct_response ", "GET /v4 .* 404 NR ",
		"GET / .* 502 - direct_response ",
	} {
		m.types("again 'grep -E \"" + want + "\" " + log + "'")
	}
	m.types("isthmus describe dr reviews -n shop | grep SUBSET_EMPTY\nisthmus describe vs web -n shop | grep NO_DESTINATION")
	m.types("isthmus explain web-1.shop " + host + ":9081 | grep NO_PORT\nisthmus explain web-1.shop nowhere.shop:80 2>&1 | grep 'not found'")
	const sidecar = "{apiVersion: networking.istio.io/v1, kind: Sidecar, metadata: {name: narrow, namespace: shop}, spec: {egress: [{hosts: [./none.example]}]}}"
	m.types("echo '" + sidecar + "' | isthmus apply -f -\nagain 'isthmus explain web-1.shop " + host + ":9080 | grep NOT_IMPORTED'\n" +
		"isthmus delete sidecar narrow -n shop")
}

// waitsForClusters has the reader find out why the proxy stays PENDING: no DNS server answers for a ServiceEntry, which is then deleted.
func (m *readersMachine) waitsForClusters() {
	m.types(`ip route add default dev lo
cat > far.yaml <<'END'
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: far, namespace: shop}
spec: {hosts: [far.example], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}
END
isthmus apply -f far.yaml
isthmus describe proxy web-1.shop | grep 'Cluster .*PENDING'
curl -s 'http://127.0.0.1:15000/config_dump?resource=dynamic_warming_clusters' | grep far.example
isthmus delete serviceentry far -n shop
isthmus get proxies | grep web-1.*SYNCED
ip route del default dev lo`)
}

// TestM19SecretsAreServedAsInTheGuide follows the page about secrets of gateways.
func TestM19SecretsAreServedAsInTheGuide(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.reads(t, "secrets.md", "", "## Files on the proxy")
	m.types("isthmus status\nif isthmus status | grep SECRET_; then exit 1; fi")
	m.do(t, false)
}

// clusterOfWeb starts an API server that has the kinds of the pages, and a Service web whose endpoint answers as web-of-CLUSTER. It
// returns the path of a kubeconfig with a context of the cluster's name.
func (m *readersMachine) clusterOfWeb(t *testing.T, name, server, endpoint string) (kubeconfig string, kube *testbed.Kube) {
	t.Helper()
	m.AddLocal(server)
	m.AddLocal(endpoint)
	kube = testbed.StartKube(t, testbed.KubeOptions{Name: name, Namespace: m.Namespace, Address: netip.MustParseAddr(server)})
	testbed.StartEcho(t, testbed.EchoOptions{
		Name: "web-of-" + name, Namespace: m.Namespace, Address: netip.MustParseAddr(endpoint), HTTP: []int{9080}, // 8080 is the hub's
	})
	for _, module := range []string{"gateway-api", "mcs-api"} {
		kube.Apply(testbed.Definitions(t, "../federation/config/schema/crds/"+module+".json.gz")...)
	}
	kube.Apply(
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
		"apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {ports: [{name: http, port: 80, targetPort: 9080}]}\n",
		`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","addressType":"IPv4","metadata":{"name":"web-1","namespace":"shop",
		"labels":{"kubernetes.io/service-name":"web"}},"ports":[{"name":"http","port":9080}],"endpoints":[{"addresses":["`+endpoint+`"]}]}`)
	named := regexp.MustCompile(`\bdefault\b`).ReplaceAll(kube.Kubeconfig(), []byte(name))
	return write(t, filepath.Join(m.dir, name+".kubeconfig"), named), kube
}
