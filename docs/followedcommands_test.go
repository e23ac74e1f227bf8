package docs

import (
	"regexp"
	"strings"
	"testing"
)

// objectsOfCommands are those that the commands of the page name.
const objectsOfCommands = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: reviews, namespace: shop, labels: {team: checkout}}
spec:
  hosts: [reviews.shop.svc.cluster.local]
  ports: [{number: 9080, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.0.0.9}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop, labels: {team: checkout}}
spec: {hosts: [reviews.shop.svc.cluster.local], http: [{route: [{destination: {host: reviews.shop.svc.cluster.local}}]}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop, labels: {team: checkout}}
spec: {host: reviews.shop.svc.cluster.local}
`

// TestU86TheCommandsOfTheReferenceWork types each command of the page about the command line, with a hub that has the sample, a proxy and
// the objects that the commands name. Those about clusters are typed with clusters.md, by others.
func TestU86TheCommandsOfTheReferenceWork(t *testing.T) {
	t.Parallel()
	const page = "cli.md"
	m := newMachine(t)
	m.AddLocal("10.0.0.7")
	m.shim(t, "kustomize", "cat config/*.yaml")
	m.types("make run")
	m.types("isthmus status")
	m.reads(t, gettingStarted, "## 4. Connect an Envoy", "The node decides what Envoy receives:")
	m.types("isthmus get proxies | grep web-1.*SYNCED")
	m.types("mkdir config && cat > config/web.yaml <<'END'\n" + objectsOfCommands + "END\ncp config/web.yaml web.yaml")
	m.types(`echo 'query($first: Int, $filter: ServiceFilter) { services(first: $first, filter: $filter) { nodes { hostname } } }' > services.graphql
mkdir -p ~/.config/fish/completions $XDG_CONFIG_HOME/isthmus
fpath=(none $PWD)`)
	m.writes(t, "$XDG_CONFIG_HOME/isthmus/contexts", page, "yaml", "current: prod")
	sections := regexp.MustCompile(`(?m)^## (.+)$`).FindAllString(read(t, page), -1)
	typed := 0
	for _, heading := range sections {
		if heading == "## cluster" {
			continue
		}
		for _, block := range blocksOf(section(t, read(t, page), heading), "sh") {
			for line := range strings.Lines(block) {
				m.typesOfReference(strings.TrimSpace(line))
				typed++
			}
		}
	}
	if typed < 40 {
		t.Errorf("the page has %d commands", typed)
	}
	m.do(t, false)
}

// typesOfReference has the reader type a command when there is what it names.
func (m *readersMachine) typesOfReference(line string) {
	m.types("isthmus apply -f config/ -R --force-conflicts\nrevision=$(isthmus query '{ hub { revision } }' | jq -r .data.hub.revision)")
	line = strings.Replace(line, " 41", " $revision", 1)
	switch {
	case strings.HasSuffix(line, " -w"), strings.Contains(line, "'subscription "): // they do not end
		m.types(line + " > watched & watching=$!\nagain '[ -s watched ]'\nkill $watching; wait $watching || true")
	case strings.HasPrefix(line, "isthmus diff"):
		m.types(line + " || [ $? = 1 ]")
	case strings.HasSuffix(line, "--for deleted"):
		m.types("isthmus delete vs web -n shop\n" + line)
	case strings.HasPrefix(line, "isthmus context"): // the other commands have no context
		m.types("ISTHMUS_CONFIG=$XDG_CONFIG_HOME/isthmus/contexts " + line)
	default:
		m.types(line)
	}
}
