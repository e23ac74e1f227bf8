package xds

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/xdstest"
)

// TestG83CertificatesForBackendsAreOfOneGateway: proxies of a Gateway have the Secret of its certificate for
// backends; another Gateway of the namespace and a sidecar do not.
func TestG83CertificatesForBackendsAreOfOneGateway(t *testing.T) {
	const own, granted = "kubernetes://client", "kubernetes-ingress://store/client"
	v := newSecretsHub(t, true).onSocket()
	v.secrets.keep(SecretRef{Cluster: "c1", Namespace: "shop", Name: "client"}, "own")
	v.secrets.keep(SecretRef{Cluster: "c1", Namespace: "store", Name: "client", Granted: true}, "granted")
	of := federation.ClientCertificateKind
	present := func(spec *federation.ClientCertificate) {
		o := &federation.Object{
			Key:    federation.ObjectKey{Group: of.Group, Kind: of.Name, Namespace: "shop", Name: "edge"},
			Digest: spec.Namespace + "/" + spec.Secret, Spec: spec,
		}
		v.config.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey,
			*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{o.Key: o}}})
	}
	present(&federation.ClientCertificate{Secret: "client"})
	labelled := func(name string) xdstest.Options {
		n := ingress()
		n.Metadata.Fields["LABELS"].GetStructValue().Fields[federation.GatewayLabel] = structpb.NewStringValue(name)
		return xdstest.Options{Delta: true, Node: n}
	}
	ask := xdstest.Request{Type: xdstest.SDS, Names: []string{own, granted}}
	c := v.client(labelled("edge"))
	r := c.get(ask)
	wantNames(t, r, own)
	if got := secretIn(t, r, own).GetTlsCertificate().GetPrivateKey().GetInlineBytes(); string(got) != "key own" {
		t.Errorf("the key is %q", got)
	}
	for what, o := range map[string]xdstest.Options{
		"another Gateway": labelled("other"), "a gateway of none": {Delta: true, Node: ingress()},
		"a sidecar": {Delta: true, Node: withLabel(node("a"), federation.GatewayLabel, "edge")},
	} {
		if r := v.client(o).get(ask); len(r.Resources) > 0 {
			t.Errorf("%s gets %q", what, r.Names())
		}
	}
	present(&federation.ClientCertificate{Namespace: "store", Secret: "client"})
	r = c.accept(xdstest.SDS)
	wantNames(t, r, granted)
	wantRemoved(t, r, own)
}
