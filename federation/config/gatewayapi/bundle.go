package gatewayapi

import (
	"errors"
	"fmt"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/tlsparams"
)

// bundle has the certificates of authorities, PEM.
type bundle string

// maxAuthorities bounds a bundle, in bytes.
const maxAuthorities = 128 << 10

// configMapKey is the ConfigMap that an object means: one of its own cluster.
func configMapKey(by federation.ObjectKey, namespace, name string) federation.ObjectKey {
	return federation.ObjectKey{Kind: federation.ConfigMapKind.Name, Namespace: namespace, Name: name, Cluster: by.Cluster}
}

// add adds the certificates of a ConfigMap.
func (b *bundle) add(r *federation.Reader, key federation.ObjectKey) error {
	if key.Cluster == "" {
		return errors.New("an object for all clusters cannot use ConfigMaps; read it from its cluster with the scope CLUSTER")
	}
	o, exists := r.Object(key)
	if !exists {
		return errors.New("the hub knows no ConfigMap of this name with the key ca.crt; it reads those of sources that name the kind ConfigMap")
	}
	spec, _ := o.Spec.(*federation.ConfigMap)
	if spec == nil {
		return errors.New("it cannot be read")
	}
	found, err := tlsparams.Certificates(spec.Authorities)
	if err != nil {
		return err
	}
	if len(*b)+len(found) > maxAuthorities {
		return fmt.Errorf("with it, there are more than %d bytes of certificates", maxAuthorities)
	}
	*b += bundle(found)
	return nil
}
