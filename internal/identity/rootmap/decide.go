package rootmap

import (
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"

	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// The ConfigMap, as Istio has it: its injection mounts it into pods.
const (
	Name = "istio-ca-root-cert"
	key  = "root-cert.pem"
	// mark is the digest of what the hub wrote last. If the content has another one, somebody
	// else has written since.
	mark = "isthmus.dev/root-cert"
)

// digest identifies content.
func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:16])
}

// found is a ConfigMap as it is.
type found struct {
	namespace, version string
	mark, digest       string
}

func read(in *corev1.ConfigMap) found {
	return found{namespace: in.Namespace, version: in.ResourceVersion, mark: in.Annotations[mark], digest: digest(in.Data[key])}
}

// keyIn is the key of the ConfigMap in a namespace.
func keyIn(namespace string) listwatch.Key { return listwatch.Key{Namespace: namespace, Name: Name} }

func (f found) key() listwatch.Key { return keyIn(f.namespace) }

func (f found) size() int64 { return int64(256 + len(f.namespace)) }

// action is what is to be done about a namespace.
type action int

const (
	nothing action = iota
	create
	update
	overwrite // what somebody else wrote
	leave     // the same, but the hub may not
)

// left are the namespaces of Kubernetes itself, where no workload of a mesh is.
var left = map[string]bool{"kube-system": true, "kube-public": true, "kube-node-lease": true}

// decide says what to do about a namespace so that it has the content.
func decide(s listwatch.Namespace, exists bool, m found, has bool, content string, mayOverwrite bool) action {
	wanted := digest(content)
	switch {
	case !exists, s.Ending, left[s.Name], content == "":
		return nothing
	case !has:
		return create
	case m.digest == wanted:
		return nothing
	case m.mark == m.digest:
		return update
	case mayOverwrite:
		return overwrite
	}
	return leave
}
