package kubernetes

import (
	corev1 "k8s.io/api/core/v1"

	"isthmus.dev/isthmus/federation"
)

const labelSubZone = "topology.istio.io/subzone"

// node is what the registry keeps of a Node.
type node struct {
	record
	locality federation.Locality
}

func parseNode(in *corev1.Node) *node {
	k := key{Name: in.Name}
	n := about("Node " + in.Name)
	part := func(labels ...string) string {
		for _, label := range labels {
			if in.Labels[label] != "" {
				return place(in.Labels[label], "metadata.labels["+label+"]", &n)
			}
		}
		return ""
	}
	locality := federation.Locality{
		Region: part(corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaRegion),
		Zone:   part(corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone), SubZone: part(labelSubZone),
	}
	return &node{record: record{k: k, version: in.ResourceVersion, problems: n.All()}, locality: locality}
}

// namespace is what the registry keeps of the namespaces kube-system and
// istio-system.
type namespace struct {
	record
	network federation.NetworkID
}

func parseNamespace(in *corev1.Namespace) *namespace {
	n := about("Namespace " + in.Name)
	id := network(in.Labels[labelNetwork], "metadata.labels["+labelNetwork+"]", &n)
	return &namespace{record: record{k: key{Name: in.Name}, version: in.ResourceVersion, problems: n.All()}, network: id}
}
