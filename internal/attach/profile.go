package attach

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// ProfileOptions say what of a ClusterProfile is used to attach its cluster.
type ProfileOptions struct {
	// Provider is the access provider in the status of the profile that names the API
	// server.
	Provider string
	// Secret is the name of the Secret with the token, in the namespace of the profile;
	// NamePlaceholder in it is replaced by the name of the profile.
	Secret string
}

// NamePlaceholder is replaced by the name of the ClusterProfile.
const NamePlaceholder = "{name}"

// TokenKey is the key of the token in the data of a Secret, as the plugin secretreader of
// the Cluster Inventory API has it.
const TokenKey = "token"

// profile is what is kept of a ClusterProfile.
type profile struct {
	key    listwatch.Key
	access string // the cluster section of a kubeconfig, as JSON; empty: there is none
}

// accessFields are those of an access provider that a kubeconfig can have. Extensions are
// for plugins, which are never executed.
var accessFields = []string{
	"server", "certificate-authority-data", "tls-server-name", "insecure-skip-tls-verify", "proxy-url", "certificate-authority",
}

// read reads a ClusterProfile. Version v1alpha1 calls the access providers
// credentialProviders.
func (o ProfileOptions) read(in *unstructured.Unstructured) profile {
	p := profile{key: listwatch.Key{Namespace: in.GetNamespace(), Name: in.GetName()}}
	for _, field := range []string{"accessProviders", "credentialProviders"} {
		providers, _, _ := unstructured.NestedSlice(in.Object, "status", field)
		for _, each := range providers {
			provider, _ := each.(map[string]any)
			if provider["name"] != o.Provider || p.access != "" {
				continue
			}
			p.access = accessOf(provider["cluster"])
		}
	}
	return p
}

func accessOf(cluster any) string {
	fields, _ := cluster.(map[string]any)
	kept := map[string]any{}
	for _, name := range accessFields {
		if value, there := fields[name]; there && value != "" && value != false {
			kept[name] = value
		}
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return ""
	}
	return string(text)
}

func (p profile) name() listwatch.Key { return p.key }

func (p profile) size() int64 {
	return int64(len(p.key.Namespace) + len(p.key.Name) + len(p.access))
}

// secret is the Secret with the token for a profile.
func (o ProfileOptions) secret(p profile) listwatch.Key {
	return listwatch.Key{Namespace: p.key.Namespace, Name: strings.ReplaceAll(o.Secret, NamePlaceholder, p.key.Name)}
}

// remote is the cluster of a profile, with the token that is known for it.
func (o ProfileOptions) remote(p profile, tokens map[listwatch.Key]profileToken) Remote {
	r := Remote{Object: p.key.String(), Key: p.key.Name}
	at := o.secret(p)
	token, found := tokens[at]
	switch {
	case p.access == "":
		r.Refused = fmt.Sprintf("its status has no access provider %q; the cluster manager must add one, or set clusterProfiles.provider",
			o.Provider)
	case !found:
		r.Refused = fmt.Sprintf("there is no Secret %s with the token; create it, or set clusterProfiles.secret", at)
	case token.value.Reveal() == "":
		r.Refused = fmt.Sprintf("the Secret %s has no token in data[%q]", at, TokenKey)
	default:
		r.Kubeconfig = kubeconfigOf(p.access, token.value)
	}
	return r
}

// kubeconfigOf joins a cluster section and a token.
func kubeconfigOf(access string, token kube.Secret) kube.Secret {
	const name = "profile"
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"contexts": []any{map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": name}}},
		"clusters": []any{map[string]any{"name": name, "cluster": json.RawMessage(access)}},
		"users":    []any{map[string]any{"name": name, "user": map[string]any{"token": token.Reveal()}}},
	})
	if err != nil {
		return kube.Secret{} // no kubeconfig, which is refused with a reason
	}
	return kube.NewSecret(string(text))
}
