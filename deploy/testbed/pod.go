package testbed

import (
	"cmp"
	"fmt"
)

// Pod is a pod of a cluster without a scheduler and kubelets: a test writes what these would.
type Pod struct {
	Namespace, Name string
	Account         string // its service account; empty: none is named
	Labels          string // in YAML, such as {app: web}
	Annotations     string // likewise; empty: none
	Address         string
}

// Manifest is the pod on a node. Its container is never started.
func (p Pod) Manifest() string {
	text := fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: %s
  namespace: %s
  labels: %s
  annotations: %s
spec:
  nodeName: node-1
  containers: [{name: main, image: none}]
`, p.Name, p.Namespace, p.Labels, cmp.Or(p.Annotations, "{}"))
	if p.Account != "" {
		text += "  serviceAccountName: " + p.Account + "\n"
	}
	return text
}

// Status is that of the pod, running and ready at its address, as a manifest.
func (p Pod) Status() string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: %s
  namespace: %s
status: {phase: Running, conditions: [{type: Ready, status: "True"}], podIP: %[3]s, podIPs: [{ip: %[3]s}]}
`, p.Name, p.Namespace, p.Address)
}

// Run has the pod be there, with its service account, and ready.
func (p Pod) Run(in *Kube) {
	in.t.Helper()
	in.Apply(fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: %s\n  namespace: %s\n", p.Account, p.Namespace), p.Manifest())
	in.ApplyStatus(p.Status())
}
