package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

// TestR12RootsOfTheMeshSignNoOperators: with a root of the mesh as --tls-client-ca,
// every workload could change the hub.
func TestR12RootsOfTheMeshSignNoOperators(t *testing.T) {
	t.Parallel()
	t.Run("at the start", func(t *testing.T) {
		dir := shortDir(t)
		ca := testbed.NewAuthority(t, "ca")
		args := append([]string{
			"serve", "--data-dir", filepath.Join(dir, "data"), "--graphql-addr", "unix:" + filepath.Join(dir, "graphql"),
			"--xds-addr", "unix:" + filepath.Join(dir, "xds"), "--health-addr", "unix:" + filepath.Join(dir, "health"),
			"--config", write(t, filepath.Join(dir, "x.yaml"), fmt.Sprintf("identity: {bundles: [{trustDomain: cluster.local, file: %s}]}\n",
				filepath.Join(dir, "ca"))),
		}, secureFlags(t, dir, ca)...)
		var log Text
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if code := run(ctx, args, cmdutil.Streams{Out: io.Discard, Err: &log}); code != 1 || !strings.Contains(log.String(), "--tls-client-ca") ||
			!strings.Contains(log.String(), "a root of the mesh") {
			t.Errorf("it ends with %d:\n%s", code, log.String())
		}
	})
	t.Run("while it runs", func(t *testing.T) {
		p := startSecureProgram(t, "true", "")
		if code, _, err := p.get("/graphql?query=%7B__typename%7D"); err != nil || code != 200 {
			t.Fatalf("an operator is answered with %d, %v", code, err)
		}
		bundle := filepath.Join(p.dir, "mesh")
		write(t, bundle+".new", string(p.mesh.PEM)+string(p.ca.PEM))
		if err := os.Rename(bundle+".new", bundle); err != nil {
			t.Fatal(err)
		}
		p.health.await(t, "operators to be refused", func() error {
			if code, _, err := p.get("/graphql?query=%7B__typename%7D"); err == nil {
				return fmt.Errorf("one is answered with %d", code)
			}
			return nil
		})
	})
}
