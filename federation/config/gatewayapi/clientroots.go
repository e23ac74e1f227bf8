package gatewayapi

import (
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
)

const (
	invalidRoots = string(gateway.ListenerReasonInvalidCACertificateRef)
	invalidKind  = string(gateway.ListenerReasonInvalidCACertificateKind)
)

// readAuthorities reads which authorities the Gateway says sign the certificates of clients: those of ConfigMaps,
// or of one Secret. A reference that is wrong does not count; without any, nothing listens.
func (l *listener) readAuthorities(r *federation.Reader, by federation.ObjectKey, refs []gateway.ObjectReference, field string) {
	var all bundle
	for i, ref := range refs {
		use := reference{
			by: by, kind: string(ref.Kind), namespace: ref.Namespace, name: string(ref.Name), field: itemField(field, i),
			otherwise: "it does not count",
		}
		switch {
		case ref.Group == "" && string(ref.Kind) == federation.ConfigMapKind.Name:
			l.readConfigMap(r, use, &all)
		case ref.Group != "" || ref.Kind != "Secret":
			l.lacks.add(resolved, invalidKind, use.field, "the hub reads authorities from ConfigMaps and Secrets, and not from a %s",
				federation.Quote(use.kind))
		case len(refs) > 1:
			l.lacks.add(resolved, invalidRoots, use.field, "a Secret with authorities is the only reference, and there are %d; use ConfigMaps",
				len(refs))
		case l.mayUseSecret(r, by, use, &l.lacks, invalidRoots):
			l.roots = use.name
		}
	}
	l.inline = string(all)
	if l.roots == "" && l.inline == "" {
		l.faults.add(accepted, string(gateway.ListenerReasonNoValidCACertificate), field,
			"there is no authority that could verify clients; nothing listens")
	}
}

// readConfigMap adds the authorities of a ConfigMap.
func (l *listener) readConfigMap(r *federation.Reader, use reference, all *bundle) {
	if !use.permitted(r) {
		use.refuse(&l.lacks)
		return
	}
	key := configMapKey(use.by, use.from(), use.name)
	err := all.add(r, key)
	if err != nil {
		l.lacks.add(resolved, invalidRoots, use.field, "the ConfigMap %s/%s cannot be used: %v", key.Namespace, key.Name, err)
	}
}
