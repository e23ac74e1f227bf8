package registration

import (
	"encoding/json"
	"maps"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/text"
)

const (
	// defaultAccount is that of a group that names none.
	defaultAccount = "default"
	// groupAnnotation names the group of an entry, as with Istio.
	groupAnnotation = "istio.io/autoRegistrationGroup"
	// nodeAnnotation names the proxy that an entry is of.
	nodeAnnotation = "isthmus.dev/registered-by"
	labelTLSMode   = "security.istio.io/tlsMode"
	longestName    = 253
	longestLabel   = 63
	mostReason     = 256 // bytes of what an agent says about the health of its workload
)

// health is what an agent reported; unhealthy is the reason, or empty.
type health struct{ unhealthy string }

// key is that of the proxy's record. A WorkloadEntry of a group is called GROUP-ADDRESS, and the network if the proxy
// names one, as Istio names them.
func (p Proxy) key() federation.ObjectKey {
	if p.Group == "" {
		return config.WorkloadHealthKey(p.workload())
	}
	name := p.Group + "-" + strings.ReplaceAll(p.address().String(), ":", "-")
	if p.Network != "" {
		name += "-" + string(p.Network)
	}
	name = strings.Trim(name[max(len(name)-longestName, 0):], "-.") // an IPv6 address may end with colons
	return federation.WorkloadEntryKind.Key(p.Namespace, name)
}

// groupOf is the group that the proxy names: the one for proxies of its cluster comes first.
func groupOf(p Proxy, s *federation.Snapshot) *networking.WorkloadGroup {
	key := federation.WorkloadGroupKind.Key(p.Namespace, p.Group)
	key.Cluster = p.Cluster
	o, exists := s.Object(key)
	if !exists {
		key.Cluster = ""
		o, exists = s.Object(key)
	}
	if !exists {
		return nil
	}
	group, _ := o.Spec.(*networking.WorkloadGroup)
	return group
}

// entryOf is the manifest of the proxy's WorkloadEntry; the error is a *Refusal. The group
// alone says which labels it has: what a proxy says about itself selects no service.
func entryOf(p Proxy, s *federation.Snapshot, hub federation.ClusterID, h health) ([]byte, error) {
	group := groupOf(p, s)
	if group == nil {
		return nil, refuse(NoGroup, "there is no WorkloadGroup %s/%s: apply it, or correct ISTIO_META_AUTO_REGISTER_GROUP", p.Namespace, p.Group)
	}
	spec, _ := proto.Clone(group.GetTemplate()).(*networking.WorkloadEntry)
	if spec == nil {
		spec = &networking.WorkloadEntry{}
	}
	if spec.ServiceAccount == "" {
		spec.ServiceAccount = defaultAccount
	}
	if spec.GetServiceAccount() != p.Account {
		return nil, refuse(OtherIdentity, "WorkloadGroup %s/%s is for the service account %q, and the proxy is proven to be %q", p.Namespace,
			p.Group, spec.GetServiceAccount(), p.Account)
	}
	if err := p.ofTrustDomain(s, hub); err != nil {
		return nil, err
	}
	if why := s.Settings().Addresses.Refuse(p.address(), 0); why != "" {
		return nil, refuse(Invalid,
			"the address %s %s, and no proxy is sent there: set INSTANCE_IP to an address at which others reach the workload", p.address(), why)
	}
	spec.Address = p.address().String()
	if p.Network != "" {
		spec.Network = string(p.Network)
	}
	if p.Locality != (federation.Locality{}) {
		spec.Locality = strings.TrimRight(p.Locality.Region+"/"+p.Locality.Zone+"/"+p.Locality.SubZone, "/")
	}
	labels := map[string]string{}
	if len(p.Group) <= longestLabel {
		labels[federation.WorkloadNameLabel] = p.Group // metrics are about the group, as with Istio
	}
	maps.Copy(labels, spec.GetLabels())
	maps.Copy(labels, group.GetMetadata().GetLabels())
	if !p.Identity {
		labels[labelTLSMode] = "disabled"
	}
	spec.Labels = labels
	return manifestOf(p, spec, group.GetMetadata().GetAnnotations(), h)
}

func manifestOf(p Proxy, spec *networking.WorkloadEntry, annotations map[string]string, h health) ([]byte, error) {
	body, err := protojson.Marshal(spec)
	if err != nil {
		return nil, refuse(Invalid, "its WorkloadEntry cannot be written: %v", err)
	}
	said := map[string]string{}
	maps.Copy(said, annotations)
	said[groupAnnotation], said[nodeAnnotation] = p.Group, p.Node
	delete(said, federation.UnhealthyAnnotation)
	delete(said, federation.HealthReportsAnnotation) // they count without it
	if h.unhealthy != "" {
		said[federation.UnhealthyAnnotation] = text.Readable(h.unhealthy, mostReason)
	}
	key := p.key()
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": key.Group + "/v1", "kind": key.Kind, "spec": json.RawMessage(body),
		"metadata": map[string]any{"namespace": key.Namespace, "name": key.Name, "labels": spec.GetLabels(), "annotations": said},
	})
	if err != nil {
		return nil, refuse(Invalid, "its WorkloadEntry cannot be written: %v", err)
	}
	return manifest, nil
}
