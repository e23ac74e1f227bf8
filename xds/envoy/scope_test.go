package envoy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1"
	envoyfilters "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Whatever facet a node has for a type, its scope builds that type; nothing is in
// the table that no node has; and the two layers have the same scopes.
func TestK82EveryFacetHasARow(t *testing.T) {
	nodes := []node.Node{
		{Type: node.Sidecar, Capture: true, DNSCapture: true, Identity: true, HTTPProxyPort: 15080},
		{Type: node.Sidecar, Capture: true, DNSCapture: true, Identity: true, Agent: true, AgentNames: true},
		{Type: node.Router},
		{Type: node.Router, RouterMode: node.SNIDNAT},
		{Type: node.Sidecar, GRPC: true},
	}
	objects, settings := map[federation.ObjectKey]*federation.Object{}, &federation.MeshSettings{GatewayNamespaces: []string{"*"}}
	settings.EnvoyFilters.Namespaces = []string{"shop"}
	for key, spec := range map[federation.ObjectKey]any{
		{Group: federation.SidecarKind.Group, Kind: federation.SidecarKind.Name, Namespace: "limited", Name: "default"}: &networking.Sidecar{
			Egress: []*networking.IstioEgressListener{
				{Hosts: []string{"./*"}}, {Hosts: []string{"./*"}, Bind: "127.0.0.1", Port: &networking.SidecarPort{Number: 9080, Protocol: "HTTP"}},
			},
			Ingress: []*networking.IstioIngressListener{{Port: &networking.SidecarPort{Number: 80}}},
		},
		{
			Group: federation.DestinationRuleKind.Group, Kind: federation.DestinationRuleKind.Name, Namespace: "limited",
			Name: "own",
		}: &networking.DestinationRule{Host: "web", ExportTo: []string{"."}},
		{
			Group: federation.EnvoyFilterKind.Group, Kind: federation.EnvoyFilterKind.Name, Namespace: "shop",
			Name: "adds",
		}: &envoyfilters.EnvoyFilter{ConfigPatches: []*envoyfilters.EnvoyFilter_EnvoyConfigObjectPatch{
			{ApplyTo: envoyfilters.EnvoyFilter_CLUSTER, Patch: &envoyfilters.EnvoyFilter_Patch{Operation: envoyfilters.EnvoyFilter_Patch_ADD}},
			{ApplyTo: envoyfilters.EnvoyFilter_LISTENER, Patch: &envoyfilters.EnvoyFilter_Patch{Operation: envoyfilters.EnvoyFilter_Patch_ADD}},
		}},
		federation.MeshSettingsKey: settings,
	} {
		objects[key] = &federation.Object{Key: key, Spec: spec, Digest: "1", Names: []string{federation.WorkloadsName + key.Namespace}}
	}
	e := federation.Edit{Source: federation.ShardKey{Cluster: "c1", Provider: federation.Kubernetes}}
	e.Objects.Set = objects
	s, _ := federation.Next(federation.Empty(), e)
	type cell struct {
		scope node.Scope
		grpc  bool
		of    resource.Type
	}
	found := map[cell]bool{}
	for _, n := range nodes {
		for _, namespace := range []string{"shop", "limited"} {
			n.Cluster, n.Namespace, n.Addresses = "c1", namespace, []netip.Addr{netip.MustParseAddr("10.0.0.1")}
			for _, row := range resource.Types {
				of := row.Type
				for _, f := range node.Facets(of, n, s) {
					found[cell{f.Scope, f.GRPC, of}] = true
					if contentOf(f)[of].build == nil {
						t.Errorf("facet %s of a %s has no row that builds %s", f, n.Type, of)
					}
				}
			}
		}
	}
	rows := 0
	for of := node.ScopeStatic; of.String() != ""; of++ {
		rows++
		for grpc, c := range map[bool]content{false: scopes[of].proxies, true: scopes[of].clients} {
			for typ := range c {
				if !found[cell{of, grpc, typ}] {
					t.Errorf("the scope %s (gRPC: %t) builds %s, and no node has it", of, grpc, typ)
				}
			}
		}
		if len(scopes[of].proxies)+len(scopes[of].clients) == 0 {
			t.Errorf("the scope %s has no row that builds anything", of)
		}
	}
	if len(scopes) != rows {
		t.Errorf("%d scopes have rows here, %d in the room node", len(scopes), rows)
	}
}

// The types whose resources are in parts are those that have a row about parts.
func TestK84TypesInPartsAreDivided(t *testing.T) {
	for _, row := range resource.Types {
		if _, divides := divided[row.Type]; divides != row.Has(resource.InParts) {
			t.Errorf("%s has a row about its parts: %t; its trait says the opposite", row.Type, divides)
		}
		if row.Has(resource.BuiltInParts) && !row.Has(resource.InParts) {
			t.Errorf("%s is built in parts, and proxies may refuse none of them", row.Type)
		}
	}
}

// Outside of the room node, code asks for traits and names no scope; in it, code compares none.
func TestK82ScopesAreAskedForTraits(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || path == "scope.go" {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		refuse := func(n ast.Node, name string) {
			if strings.HasPrefix(name, "Scope") && name != "Scope" {
				t.Errorf("%s names %s: ask for a trait of its row in node/scopes.go", files.Position(n.Pos()), name)
			}
		}
		compared := func(n ast.Node, all ...ast.Expr) {
			for _, one := range all {
				if name, is := one.(*ast.Ident); is && file.Name.Name == "node" {
					refuse(n, name.Name)
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if room, is := n.X.(*ast.Ident); is && room.Name == "node" {
					refuse(n, n.Sel.Name)
				}
			case *ast.BinaryExpr:
				compared(n, n.X, n.Y)
			case *ast.CaseClause:
				compared(n, n.List...)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
