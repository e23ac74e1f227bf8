package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shownSource is a source of configuration as the API shows it.
type shownSource struct {
	Name, Kind    string
	Revision, Age *string
	Problems      []struct{ Code, Object, Field, Message string }
}

func (h *hubUnderTest) source(name string) (shownSource, error) {
	var answer struct{ ConfigSources []shownSource }
	err := h.query(`{configSources {name kind revision age problems {code object field message}}}`, &answer)
	for _, s := range answer.ConfigSources {
		if s.Name == name {
			return s, err
		}
	}
	return shownSource{}, fmt.Errorf("no source %s: %w", name, err)
}

func (h *hubUnderTest) awaitSource(t *testing.T, name string, holds func(shownSource) bool) {
	t.Helper()
	h.await(t, "source "+name, func() error {
		s, err := h.source(name)
		if err == nil && !holds(s) {
			err = fmt.Errorf("it is %+v", s)
		}
		return err
	})
}

const entryManifest = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: shop}
spec: {hosts: [%[1]s.example.com], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 192.0.2.%[2]d}]}
`

func TestFolderOfManifestsIsASource(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(shortDir(t), "mesh")
	h := startHub(t, "--config-dir", dir)
	h.awaitSource(t, "FILE", func(s shownSource) bool {
		return s.Kind == "FILE" && s.Revision == nil && len(s.Problems) == 1 && strings.Contains(s.Problems[0].Message, dir)
	})
	h.await(t, "the reason why the hub is not ready", func() error {
		status, body, err := h.get("/readyz")
		if err == nil && (status == 200 || !strings.Contains(body, "cannot be read")) {
			err = fmt.Errorf("it answers %d %s", status, body)
		}
		return err
	})
	if err := h.query(`{services {totalCount}}`, &struct{}{}); err == nil || !strings.Contains(err.Error(), "cannot be read") { // R107
		t.Errorf("a hub that has not read its folder answers what there is: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a.yaml"), fmt.Sprintf(entryManifest, "a", 1))
	h.await(t, "the service of the file", func() error {
		var answer struct{ Service *struct{ Hostname string } }
		if err := h.query(`{service(hostname: "a.example.com") {hostname}}`, &answer); err != nil || answer.Service == nil {
			return fmt.Errorf("it is not there: %w", err)
		}
		return nil
	})
	h.await(t, "the hub to be ready", func() error {
		status, body, err := h.get("/readyz")
		if err == nil && status != 200 {
			err = fmt.Errorf("it answers %d %s", status, body)
		}
		return err
	})
	var deletion struct {
		Delete struct {
			UserErrors []struct{ Code, Message string }
		}
	}
	err := h.query(`mutation {delete(input: {objects: [{group: "networking.istio.io", kind: "ServiceEntry", namespace: "shop", name: "a"}]}) {userErrors {code message}}}`, &deletion)
	if err != nil || len(deletion.Delete.UserErrors) != 1 || deletion.Delete.UserErrors[0].Code != "READ_ONLY" {
		t.Errorf("an object of the folder is deleted: %+v, %v", deletion, err)
	}
	write(t, filepath.Join(dir, "a.yaml"), "")
	h.awaitSource(t, "FILE", func(s shownSource) bool {
		return len(s.Problems) == 1 && s.Problems[0].Object == "a.yaml" && s.Problems[0].Code == "EMPTY"
	})
	for _, asked := range [][]string{{"get", "serviceentry", "b"}, {"describe", "serviceentry", "b"}, {"describe", "serviceentry", "a"}} {
		_, out, errText := command(t, append(asked, "-n", "shop", "--server", "unix:"+filepath.Join(h.dir, "graphql"))...)
		if !strings.Contains(out+errText, "a.yaml: the file has no object") {
			t.Errorf("%q does not say what is wrong with the file: %s%s", asked, out, errText)
		}
	}
}
