package consul

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"

	"isthmus.dev/isthmus/federation"
)

// DefaultHostname is the hostname template of a cluster that sets none.
const DefaultHostname = "{{.Service}}.service.consul"

// naming maps the names of one Consul to service keys. It is injective but for
// upper and lower case, which the model finds (B-C4).
type naming struct {
	template  *template.Template
	cluster   federation.ClusterID
	namespace string
}

// hostnameData is all that a hostname template can see.
type hostnameData struct {
	Service, Datacenter, Namespace string
	Cluster                        federation.ClusterID
}

func parseNaming(o Options) (*naming, error) {
	t, err := template.New("hostname").Parse(o.Hostname)
	if err != nil {
		return nil, fmt.Errorf("consul.hostname: reading the template: %w", err)
	}
	if err := checkTemplate(t.Tree); err != nil {
		return nil, fmt.Errorf("consul.hostname: %w", err)
	}
	if o.Namespace != "" && !isLabel(o.Namespace) {
		return nil, errors.New("consul.namespace: must be a DNS label in lower case")
	}
	n := &naming{template: t, cluster: o.Cluster, namespace: o.Namespace}
	if _, err := n.key("web", cmp.Or(o.Datacenter, "dc1")); err != nil {
		return nil, fmt.Errorf("consul.hostname: for a service web: %w", err)
	}
	return n, nil
}

// checkTemplate allows text and plain fields, so that a template can neither
// loop nor grow, and wants the service's name in it.
func checkTemplate(tree *parse.Tree) error {
	service := false
	for _, node := range tree.Root.Nodes {
		switch node := node.(type) {
		case *parse.TextNode:
		case *parse.ActionNode:
			field, ok := plainField(node.Pipe)
			if !ok {
				return fmt.Errorf("%s: only {{.Service}}, {{.Datacenter}}, {{.Namespace}} and {{.Cluster}} are known", node)
			}
			service = service || field == "Service"
		default:
			return fmt.Errorf("%s: only text and plain fields are allowed", node)
		}
	}
	if !service {
		return errors.New("must contain {{.Service}}, or all services would have one name")
	}
	return nil
}

func plainField(pipe *parse.PipeNode) (string, bool) {
	if pipe == nil || len(pipe.Decl) > 0 || len(pipe.Cmds) != 1 || len(pipe.Cmds[0].Args) != 1 {
		return "", false
	}
	field, ok := pipe.Cmds[0].Args[0].(*parse.FieldNode)
	if !ok || len(field.Ident) != 1 {
		return "", false
	}
	switch field.Ident[0] {
	case "Service", "Datacenter", "Namespace", "Cluster":
		return field.Ident[0], true
	}
	return "", false
}

// key is the service key of a Consul service. Its error says why the name
// cannot be used.
func (n *naming) key(service, datacenter string) (federation.ServiceKey, error) {
	if !isLabel(strings.ToLower(service)) || !isASCII(service) {
		return federation.ServiceKey{}, errors.New("is not a DNS label (letters, digits and hyphens, at most 63); rename it in Consul")
	}
	var b strings.Builder
	data := hostnameData{Service: service, Datacenter: datacenter, Namespace: n.namespace, Cluster: n.cluster}
	if err := n.template.Execute(&b, data); err != nil {
		return federation.ServiceKey{}, fmt.Errorf("making its hostname: %w", err)
	}
	host := strings.ToLower(b.String())
	if !isHostname(host) {
		return federation.ServiceKey{}, fmt.Errorf("its hostname %s is not a DNS name; see consul.hostname", quote(host))
	}
	return federation.ServiceKey{Hostname: federation.Hostname(host), Namespace: n.namespaceOf(host)}, nil
}

func (n *naming) namespaceOf(host string) string {
	if n.namespace != "" {
		return n.namespace
	}
	if labels := strings.Split(host, "."); len(labels) >= 4 && labels[2] == "svc" {
		return labels[1]
	}
	return ""
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}

// isLabel tells a DNS label in lower case.
func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	}) < 0
}

func isHostname(s string) bool {
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return true
}

// quote shows foreign text in a message: short, and without control characters.
func quote(s string) string {
	if len(s) > 80 {
		return fmt.Sprintf("%q… (%d bytes)", s[:80], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// plain is quote without marks where the text needs none.
func plain(s string) string {
	if q := quote(s); q != `"`+s+`"` || s == "" {
		return q
	}
	return s
}
