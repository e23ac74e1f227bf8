package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// emptySources is a hub whose config file has an empty list of sources, started again with other settings beside it. A cluster
// with a VirtualService is attached to it, and MeshSettings name the cluster.
type emptySources struct {
	*hubUnderTest
	t   *testing.T
	dir string
}

// restart has the hub read the config file with these lines beside the empty list.
func (e *emptySources) restart(settings string, flags ...string) {
	e.t.Helper()
	if e.hubUnderTest != nil {
		e.stop()
	}
	e.hubUnderTest = startHubIn(e.t, e.dir, append(flags, "--log-format", "json", "--config", fileOf(e.t, "sources: []\n%s", settings))...)
	e.await(e.t, "the hub to be ready", func() error {
		status, body, err := e.get("/readyz")
		if err == nil && status != 200 {
			err = fmt.Errorf("it answers %d %s", status, body)
		}
		return err
	})
}

// reads waits until the hub shows these sources, which the list chooses from, and has the objects of one of them alone. The sources
// are in order of precedence.
func (e *emptySources) reads(only string, shown ...string) {
	e.t.Helper()
	e.await(e.t, "the objects of "+only, func() error {
		sources, err := e.chosen()
		if err != nil {
			return err
		}
		objects, err := e.objects()
		if err != nil {
			return err
		}
		if !slices.Equal(sources, shown) || !slices.Equal(objects, []string{only}) {
			return fmt.Errorf("the sources are %q, with objects of %q", sources, objects)
		}
		return nil
	})
}

// chosen are the sources that the list of the config file is about, and the codes of their problems.
func (e *emptySources) chosen() (names []string, err error) {
	var answer struct{ ConfigSources []shownSource }
	err = e.query(`{configSources {name kind problems {code}}}`, &answer)
	for _, s := range answer.ConfigSources {
		name := s.Name
		for _, p := range s.Problems {
			name += " " + p.Code
		}
		if slices.Contains([]string{"MCP", "FILE", "CRD"}, s.Kind) {
			names = append(names, name)
		}
	}
	return names, err
}

// objects are the sources of the objects that this test has made.
func (e *emptySources) objects() (sources []string, err error) {
	type object *struct{ SourceName string }
	var answer struct{ Server, File, Custom object }
	err = e.query(`{server: configObject(group: "networking.istio.io", kind: "ServiceEntry", namespace: "shop", name: "far") {sourceName}
		file: configObject(group: "networking.istio.io", kind: "ServiceEntry", namespace: "shop", name: "near") {sourceName}
		custom: configObject(group: "networking.istio.io", kind: "VirtualService", namespace: "shop", name: "web") {sourceName}}`, &answer)
	for _, o := range []object{answer.Server, answer.File, answer.Custom} {
		if o != nil {
			sources = append(sources, o.SourceName)
		}
	}
	return sources, err
}

// unread waits for the warnings of settings that the hub does not use, and for no others.
func (e *emptySources) unread(want ...string) {
	e.t.Helper()
	var found []string
	for _, l := range e.lines(e.t) {
		if strings.HasPrefix(fmt.Sprint(l["msg"]), "configuration is not read") {
			found = append(found, fmt.Sprint(l["level"], " ", l["field"], " ", l["source"]))
		}
	}
	if !slices.Equal(found, want) {
		e.t.Errorf("the hub says that it does not read %q, want %q", found, want)
	}
}

// TestU23Seeds27And28AHubWithAnEmptyListReadsOneSource: without other settings this is an attached cluster, with a folder the folder,
// and with a server of configuration the server. The hub shows which one, and what it does not read.
func TestU23Seeds27And28AHubWithAnEmptyListReadsOneSource(t *testing.T) {
	t.Parallel()
	home, access := startHome(t, "custom-resources.yaml")
	installKinds(t, home, "istio", "virtualservices.networking.istio.io")
	home.Apply(strings.Split(attachedService, "---\n")...)
	home.Apply(fmt.Sprintf(customRoute, "first"))
	folder := t.TempDir()
	write(t, filepath.Join(folder, "near.yaml"), fmt.Sprintf(entryManifest, "near", 1))
	address, _ := serveADS(t, configServer{})
	server := fmt.Sprintf("mcp: {servers: [{name: far, address: %q}]}\n", address)

	e := &emptySources{t: t, dir: shortDir(t)}
	e.restart("")
	if got := e.ask(t, "attachCluster", kubernetesInput("home", access)); got.refusals() != "" {
		t.Fatalf("attached: %+v", got)
	}
	if wrong := e.applied(t, fmt.Sprintf(customSettings, ", scope: MESH")); wrong != "" {
		t.Fatal(wrong)
	}
	e.reads("CRD", "CRD")
	e.unread()

	e.restart("", "--config-dir", folder)
	e.reads("FILE", "FILE", "CRD SOURCE_OFF")
	e.unread()
	e.restart(fmt.Sprintf("configDir: %q\n", folder))
	e.reads("FILE", "FILE", "CRD SOURCE_OFF")
	e.unread()

	e.restart(server, "--config-dir", folder)
	e.reads("MCP far", "MCP far", "CRD SOURCE_OFF")
	e.unread("WARN configDir FILE")
	e.awaitPhase(t, "home", "READY")

	e.restart("")
	e.reads("CRD", "CRD")
	e.unread()
}
