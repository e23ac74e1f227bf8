package kubernetes

import corev1 "k8s.io/api/core/v1"

// defaults is what a Namespace says about those of its Services that do not say it
// themselves.
type defaults struct {
	record
	distribution string
}

func parseDefaults(in *corev1.Namespace) *defaults {
	n := about("Namespace " + in.Name)
	return &defaults{
		distribution: annotated(in.Annotations, &n),
		record:       record{k: key{Name: in.Name}, version: in.ResourceVersion, problems: n.All()},
	}
}

func (d *defaults) distributes() string {
	if d == nil {
		return ""
	}
	return d.distribution
}
