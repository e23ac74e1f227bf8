package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// TestKubeconfigs has a cluster in the watched folder that is dead when
// the hub starts: it delays nothing for long, joins when it comes, and goes
// with its file. A kubeconfig of the config file may change as well.
func TestKubeconfigs(t *testing.T) {
	t.Parallel()
	c2 := testbed.StartKube(t, testbed.KubeOptions{Name: "c2", ServiceCIDR: "10.97.0.0/16"})
	c2.Apply(kubeService("shop/web", "10.97.0.10"), slice(pods["c2"]))
	way := testbed.StartProxy(t, c2.Address)
	way.Blackhole()
	admin := c2.Admin
	admin.URL = "https://" + way.Addr()
	folder := testbed.ShortDir(t)
	file := filepath.Join(folder, "c2.yaml")
	write(t, file, string(admin.Kubeconfig()))

	stranger := c2.Admin
	stranger.Cert, stranger.Key, stranger.Token = nil, nil, wrongSecret
	rotated := filepath.Join(testbed.ShortDir(t), "c3.kubeconfig")
	write(t, rotated, string(stranger.Kubeconfig()))
	config := fmt.Sprintf("clusters:\n- {id: c1, provider: Mock, network: n1}\n- {id: c3, provider: Kubernetes, network: n2, kubernetes: {kubeconfig: %s}}\n", rotated)

	h := startHub(t, hubOptions{config: config, args: []string{"--kubeconfig-dir", folder}})
	becomes := func(t *testing.T, id, phase string) {
		t.Helper()
		testbed.WaitFor(t, patience, id+" is "+phase, func() error { return h.inPhase(id, phase) })
	}
	serves := func(t *testing.T, endpoint string) {
		t.Helper()
		testbed.WaitFor(t, patience, webHost+" to have "+endpoint, func() error {
			found, err := h.endpoints(webHost)
			if err == nil && !found[endpoint] {
				err = fmt.Errorf("it has %v", found)
			}
			return err
		})
	}
	t.Run("dead cluster is shown, the others are served", func(t *testing.T) {
		becomes(t, "c1", "READY")
		becomes(t, "c2", "STALE")
	})
	t.Run("it joins when it comes", func(t *testing.T) {
		way.Pass()
		becomes(t, "c2", "READY")
		serves(t, pods["c2"]+"@c2")
	})
	t.Run("it goes with its file", func(t *testing.T) {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		testbed.WaitFor(t, patience, "c2 is gone", func() error {
			s, err := h.service(webHost)
			if err == nil && s != nil {
				err = fmt.Errorf("%s is still served: %+v", webHost, s)
			}
			if _, missing := h.cluster("c2"); err == nil && missing == nil {
				err = fmt.Errorf("c2 is still listed")
			}
			return err
		})
		becomes(t, "c1", "READY")
	})
	t.Run("a rotated kubeconfig of the config file is used", func(t *testing.T) {
		becomes(t, "c3", "FAILED")
		write(t, rotated, string(c2.Kubeconfig()))
		becomes(t, "c3", "READY")
		serves(t, pods["c2"]+"@c3")
	})
}
