package docs

import (
	"encoding/json"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// patchOfPods is the argument of kubectl patch.
var patchOfPods = regexp.MustCompile(`--type merge -p '([^']+)'`)

// proxyConfigOf is the annotation that a patch of a Deployment sets; nil: it removes it.
func proxyConfigOf(t *testing.T, patch string) *string {
	t.Helper()
	var deployment struct {
		Spec struct {
			Template struct {
				Metadata struct{ Annotations map[string]*string }
			}
		}
	}
	if err := json.Unmarshal([]byte(patch), &deployment); err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	value, is := deployment.Spec.Template.Metadata.Annotations["proxy.istio.io/config"]
	if !is {
		t.Fatalf("%s does not concern the configuration of the proxy", patch)
	}
	return value
}

// hubConfigOf is the hub's config file on the page.
func hubConfigOf(t *testing.T, page string) string {
	t.Helper()
	all := blocksOf(page, "yaml")
	at := slices.IndexFunc(all, func(block string) bool { return strings.Contains(block, "\nidentity:") })
	if at < 0 {
		t.Fatal("the page has no config file")
	}
	return all[at]
}

// agentAddress is where a page sends Istio's agent: for its configuration, or for its certificate.
var agentAddress = regexp.MustCompile(`(?:discoveryAddress|CA_ADDR)\W+[^\s"\\]+:\d+`)

// TestU29AgentsAreSentWhereTheyUseTLS: at port 15010 an agent asks for certificates in plain
// text. Objects of the guide's cluster are for the mesh, so that its services are, too.
func TestU29AgentsAreSentWhereTheyUseTLS(t *testing.T) {
	seen := 0
	for _, name := range []string{"move-from-istio.md", "istio-agent.md"} {
		for _, address := range agentAddress.FindAllString(read(t, name), -1) {
			seen++
			if strings.HasSuffix(address, ":15010") {
				t.Errorf("%s: %s", name, address)
			}
		}
	}
	if seen < 5 {
		t.Errorf("the pages have %d addresses", seen)
	}
	sources := regexp.MustCompile(`(?s)sources:\n  - cluster: c1\n.*?\n\x60`).FindString(read(t, "move-from-istio.md"))
	if !strings.Contains(sources, "scope: MESH") || !strings.Contains(sources, `namespaces: ["*"]`) {
		t.Errorf("the sources are %q", sources)
	}
}

// TestU18TheGuideFromIstioFitsItself: the address that pods are given is that of the config
// file, moving back removes exactly what moving set, and every manifest is applied in files
// that exist.
func TestU18TheGuideFromIstioFitsItself(t *testing.T) {
	page := read(t, "move-from-istio.md")
	var config struct {
		XDS struct{ Addr string }
		TLS struct{ Names []string }
	}
	if err := yaml.Unmarshal([]byte(hubConfigOf(t, page)), &config); err != nil {
		t.Fatal(err)
	}
	patches := patchOfPods.FindAllStringSubmatch(page, -1)
	if len(patches) != 2 {
		t.Fatalf("there are %d patches", len(patches))
	}
	var proxy struct{ DiscoveryAddress string }
	if err := json.Unmarshal([]byte(*proxyConfigOf(t, patches[0][1])), &proxy); err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(proxy.DiscoveryAddress)
	if err != nil || !slices.Contains(config.TLS.Names, host) || !strings.HasSuffix(config.XDS.Addr, ":"+port) {
		t.Errorf("pods are sent to %s, and the hub is %v at %s (%v)", proxy.DiscoveryAddress, config.TLS.Names, config.XDS.Addr, err)
	}
	if proxyConfigOf(t, patches[1][1]) != nil {
		t.Error("the way back leaves the annotation")
	}
	for _, file := range regexp.MustCompile(`-f (deploy/\S+)`).FindAllStringSubmatch(page, -1) {
		read(t, "../"+file[1])
	}
	if !strings.Contains(page, "| ambient mode (ztunnel, waypoints) | not supported") {
		t.Error("the table does not say that ambient mode is not supported")
	}
}
