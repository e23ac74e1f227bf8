package conformance

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"isthmus.dev/isthmus/deploy/testbed"
)

const (
	node        = "node-1"
	nodeAddress = subnet + ".2"
	execLimit   = 30 * time.Second
)

// kubelet answers what the API server asks the kubelet of a node: it runs commands in pods, and has their logs.
type kubelet struct {
	*rig
	mu         sync.Mutex
	containers map[string]*container // by NAMESPACE/POD
}

// container is the only one of a pod.
type container struct {
	namespace string
	place     *testbed.Namespace
	program   *testbed.Process
	lengths   []length
}

// length is how many bytes the log of a container had.
type length struct {
	at    time.Time
	bytes int
}

// startKubelet serves, and writes the Node of the pods.
func startKubelet(r *rig) *kubelet {
	r.t.Helper()
	k := &kubelet{rig: r, containers: map[string]*container{}}
	cert, key := testbed.NewAuthority(r.t, "kubelets").Issue(testbed.Subject{Name: node, Hosts: []string{nodeAddress}})
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		r.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", nodeAddress+":0")
	if err != nil {
		r.t.Fatal(err)
	}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /exec/{namespace}/{pod}/{container}", k.exec)
	routes.HandleFunc("GET /exec/{namespace}/{pod}/{container}", k.exec)
	routes.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.logs)
	// A connection that an exec takes over is one of HTTP/1.1.
	server := &http.Server{Handler: routes, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	r.t.Cleanup(func() { _ = server.Close() })
	k.register(int32(listener.Addr().(*net.TCPAddr).Port))
	return k
}

func (k *kubelet) register(port int32) {
	k.t.Helper()
	o := &core.Node{ObjectMeta: v1.ObjectMeta{Name: node}}
	if err := k.client.Create(k.t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
		k.t.Fatal(err)
	}
	if err := k.client.Get(k.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		k.t.Fatal(err)
	}
	o.Status.Addresses = []core.NodeAddress{{Type: core.NodeInternalIP, Address: nodeAddress}}
	o.Status.DaemonEndpoints.KubeletEndpoint.Port = port
	if err := k.client.Status().Update(k.t.Context(), o); err != nil {
		k.t.Fatal(err)
	}
}

// add gives the kubelet a container.
func (k *kubelet) add(namespace, pod string, c *container) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c.namespace = namespace
	k.containers[namespace+"/"+pod] = c
}

func (k *kubelet) of(r *http.Request) *container {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.containers[r.PathValue("namespace")+"/"+r.PathValue("pod")]
}

// sync notes how long the logs are.
func (k *kubelet) sync(context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.containers {
		now := length{time.Now(), len(c.program.Output())}
		if n := len(c.lengths); n == 0 || c.lengths[n-1].bytes != now.bytes {
			c.lengths = append(c.lengths, now)
		}
	}
	return nil
}

// logs writes the log since a time. As with real kubelets, whose requests have full seconds, a bit more than that may come.
func (k *kubelet) logs(w http.ResponseWriter, r *http.Request) {
	c := k.of(r)
	if c == nil {
		http.Error(w, "no such container", http.StatusNotFound)
		return
	}
	from := 0
	if since, err := time.Parse(time.RFC3339, r.FormValue("sinceTime")); err == nil {
		k.mu.Lock()
		for _, l := range c.lengths {
			if !l.at.After(since) {
				from = l.bytes
			}
		}
		k.mu.Unlock()
	}
	_, _ = w.Write(c.program.Output()[from:])
}

func (k *kubelet) exec(w http.ResponseWriter, r *http.Request) {
	c := k.of(r)
	streams, err := remotecommand.NewOptions(r)
	if c == nil || err != nil {
		http.Error(w, cmp.Or(err, errors.New("no such container")).Error(), http.StatusNotFound)
		return
	}
	remotecommand.ServeExec(w, r, execution{k, c}, r.PathValue("pod"), "", r.PathValue("container"), r.Form["command"], streams,
		execLimit, execLimit, remotecommand.SupportedStreamingProtocols)
}

// execution runs commands in a container.
type execution struct {
	*kubelet
	*container
}

// inPod runs a program that finds the addresses of Services by a file: FILE PROGRAM ARGUMENTS.
const inPod = `mount --bind "$1" /etc/hosts && shift && exec "$@"`

// ExecInContainer implements remotecommand.Executor.
func (e execution) ExecInContainer(ctx context.Context, _, _, _ string, argv []string, _ io.Reader, out, errors io.WriteCloser, _ bool,
	_ <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	ctx, cancel := context.WithTimeout(ctx, execLimit)
	defer cancel()
	hosts, err := e.hosts(ctx)
	if err != nil {
		return err
	}
	defer os.Remove(hosts)
	argv = append([]string{"-m", "/bin/sh", "-c", inPod, "sh", hosts, program(argv[0])}, argv[1:]...)
	cmd := exec.CommandContext(ctx, "unshare", argv...)
	cmd.Stdout, cmd.Stderr = out, errors
	err = e.place.Run(cmd.Run)
	if cmd.ProcessState != nil && cmd.ProcessState.Exited() && err != nil {
		return utilexec.CodeExitError{Err: err, Code: cmd.ProcessState.ExitCode()}
	}
	return err
}

// hosts writes the names that a pod of the namespace finds by DNS.
func (e execution) hosts(ctx context.Context) (path string, err error) {
	var services core.ServiceList
	if err := e.client.List(ctx, &services); err != nil {
		return "", err
	}
	text := []string{"127.0.0.1 localhost\n"}
	for _, s := range services.Items {
		if net.ParseIP(s.Spec.ClusterIP) == nil {
			continue
		}
		short := s.Name + "." + s.Namespace
		line := fmt.Sprintf("%s %s %[2]s.svc %[2]s.svc.cluster.local", s.Spec.ClusterIP, short)
		if s.Namespace == e.namespace {
			line += " " + s.Name
		}
		text = append(text, line+"\n")
	}
	slices.Sort(text)
	file, err := os.CreateTemp(filepath.Dir(program("client")), "hosts-")
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(strings.Join(text, ""))
	return file.Name(), cmp.Or(err, file.Close(), os.Chmod(file.Name(), 0o644))
}
