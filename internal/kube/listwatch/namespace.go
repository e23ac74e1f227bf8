package listwatch

import corev1 "k8s.io/api/core/v1"

// Namespace is what those that write objects into a cluster need to know of a namespace.
type Namespace struct {
	Name   string
	Ending bool // nothing can be made in it any more
}

// Key names the namespace; it is in none.
func (n Namespace) Key() Key { return Key{Name: n.Name} }

// Size is about what it takes in memory, in bytes.
func (n Namespace) Size() int64 { return int64(128 + len(n.Name)) }

// Namespaces is how the namespaces of the cluster are listed and watched.
func Namespaces(c *Cluster) Resource[Namespace] {
	r := Of("namespaces", c.Client().CoreV1().Namespaces(), func(in *corev1.Namespace) Namespace {
		return Namespace{in.Name, in.DeletionTimestamp != nil || in.Status.Phase == corev1.NamespaceTerminating}
	}, Namespace.Size)
	r.Reconcile = true
	return r
}
