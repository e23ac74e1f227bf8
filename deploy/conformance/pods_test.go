package conformance

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/bootstrap"
)

// pods runs the suite's echo server, or a name server, for each Deployment, and writes the EndpointSlices of
// the Services that select it.
type pods struct {
	*rig
	kubelet *kubelet
	running map[string]pod // by NAMESPACE/NAME of the Deployment
	written map[string]bool
}

type pod struct {
	address string
	labels  labels.Set
}

// sync starts what is missing.
func (p *pods) sync(ctx context.Context) error {
	var deployments apps.DeploymentList
	var services core.ServiceList
	if err := p.client.List(ctx, &deployments); err != nil {
		return err
	}
	if err := p.client.List(ctx, &services); err != nil {
		return err
	}
	for i := range deployments.Items {
		if err := p.start(ctx, &deployments.Items[i]); err != nil {
			return err
		}
	}
	for i := range services.Items {
		if err := p.publish(ctx, &services.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// start runs the pod of a Deployment.
func (p *pods) start(ctx context.Context, d *apps.Deployment) error {
	if _, runs := p.running[d.Namespace+"/"+d.Name]; runs {
		return nil
	}
	switch image := d.Spec.Template.Spec.Containers[0].Image; {
	case strings.Contains(image, "/echo-basic:"):
		return p.startPlain(ctx, d, program("echo-basic"))
	case strings.Contains(image, "/coredns:"):
		return p.startPlain(ctx, d, program("coredns"))
	case strings.Contains(image, "/echo-advanced:"):
		return p.startMeshed(ctx, d)
	}
	return nil
}

// startPlain runs a program as the pod of a Deployment once what it mounts exists.
func (p *pods) startPlain(ctx context.Context, d *apps.Deployment, path string) error {
	c := d.Spec.Template.Spec.Containers[0]
	dir := p.t.TempDir()
	for _, v := range d.Spec.Template.Spec.Volumes {
		ready, err := p.mount(ctx, d.Namespace, v, dir)
		if err != nil || !ready {
			return err
		}
	}
	env := []string{"POD_NAME=" + podOf(d), "NAMESPACE=" + d.Namespace}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			value := e.Value
			for _, m := range c.VolumeMounts {
				value = strings.Replace(value, m.MountPath, filepath.Join(dir, m.Name), 1)
			}
			env = append(env, e.Name+"="+value)
		}
	}
	place := testbed.NewNamespace(p.t, d.Name)
	address := place.Join(p.pods, p.next())
	return p.record(ctx, d, address, place, testbed.ProgramOptions{Path: path, Env: env})
}

// withName runs a program as on a host of a name: NAME PROGRAM ARGUMENTS.
const withName = `echo "$1" > /proc/sys/kernel/hostname && shift && exec "$@"`

// startMeshed runs the pod of a Deployment with a sidecar.
func (p *pods) startMeshed(ctx context.Context, d *apps.Deployment) error {
	place := testbed.NewNamespace(p.t, d.Name)
	address := place.Join(p.pods, p.next())
	place.Capture(testbed.ProxyUID)
	err := p.proxy(place, bootstrap.Options{
		Kind: bootstrap.Sidecar, Name: podOf(d), Namespace: d.Namespace, Addresses: []netip.Addr{address}, Labels: d.Spec.Template.Labels,
	})
	if err != nil {
		return err
	}
	dir := p.t.TempDir()
	cert, key := testbed.NewAuthority(p.t, "echo").Issue(testbed.Subject{Name: d.Name, Hosts: []string{d.Name}})
	for name, content := range map[string][]byte{"cert.crt": cert, "cert.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return err
	}
	args := []string{"-u", "/bin/sh", "-c", withName, "sh", podOf(d), program("server")}
	for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
		args = append(args, strings.Replace(arg, "=/", "="+dir+"/", 1)) // of files
	}
	return p.record(ctx, d, address, place, testbed.ProgramOptions{Path: unshare, Args: args})
}

// podOf is the name of the only pod of a Deployment.
func podOf(d *apps.Deployment) string { return d.Name + "-0-0" }

// record runs the program of a pod, and writes the Pod, which is ready.
func (p *pods) record(ctx context.Context, d *apps.Deployment, address netip.Addr, place *testbed.Namespace,
	run testbed.ProgramOptions,
) error {
	run.Name, run.Namespace = d.Name, place
	c := &container{place: place, program: testbed.StartProgram(p.t, run)}
	p.kubelet.add(d.Namespace, podOf(d), c)
	at := pod{address.String(), d.Spec.Template.Labels}
	p.running[d.Namespace+"/"+d.Name] = at
	o := &core.Pod{ObjectMeta: v1.ObjectMeta{Name: podOf(d), Namespace: d.Namespace, Labels: at.labels}, Spec: d.Spec.Template.Spec}
	o.Spec.NodeName = node
	if err := p.client.Create(ctx, o); err != nil {
		return client.IgnoreAlreadyExists(err)
	}
	o.Status.Phase, o.Status.PodIP = core.PodRunning, at.address
	o.Status.PodIPs = []core.PodIP{{IP: at.address}}
	o.Status.Conditions = []core.PodCondition{{Type: core.PodReady, Status: core.ConditionTrue}}
	return p.client.Status().Update(ctx, o)
}

// mount writes the files of a volume. It reports whether its Secret or ConfigMap exists.
func (p *pods) mount(ctx context.Context, namespace string, v core.Volume, dir string) (bool, error) {
	var items []core.KeyToPath
	files := map[string][]byte{}
	switch {
	case v.Secret != nil:
		var secret core.Secret
		if err := p.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v.Secret.SecretName}, &secret); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		items, files = v.Secret.Items, secret.Data
	case v.ConfigMap != nil:
		var config core.ConfigMap
		if err := p.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v.ConfigMap.Name}, &config); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		items = v.ConfigMap.Items
		for key, text := range config.Data {
			files[key] = []byte(text)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, v.Name), 0o700); err != nil {
		return false, err
	}
	for _, item := range items {
		if err := os.WriteFile(filepath.Join(dir, v.Name, item.Path), files[item.Key], 0o600); err != nil {
			return false, err
		}
	}
	return true, nil
}

// publish writes the EndpointSlice of a Service.
func (p *pods) publish(ctx context.Context, s *core.Service) error {
	name := s.Namespace + "/" + s.Name + "/" + string(s.UID)
	if p.written[name] || len(s.Spec.Selector) == 0 {
		return nil
	}
	slice := &discovery.EndpointSlice{
		ObjectMeta:  v1.ObjectMeta{Name: s.Name + "-0", Namespace: s.Namespace, Labels: map[string]string{discovery.LabelServiceName: s.Name}},
		AddressType: discovery.AddressTypeIPv4,
	}
	selector := labels.SelectorFromSet(s.Spec.Selector)
	for key, pod := range p.running {
		if strings.HasPrefix(key, s.Namespace+"/") && selector.Matches(pod.labels) {
			slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{Addresses: []string{pod.address}})
		}
	}
	if len(slice.Endpoints) == 0 {
		return nil
	}
	for _, port := range s.Spec.Ports {
		number := port.TargetPort.IntVal
		slice.Ports = append(slice.Ports, discovery.EndpointPort{
			Name: &port.Name, Port: &number, Protocol: &port.Protocol,
			AppProtocol: port.AppProtocol,
		})
	}
	p.written[name] = true
	return client.IgnoreAlreadyExists(p.client.Create(ctx, slice))
}
