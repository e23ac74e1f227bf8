package apply

import (
	"fmt"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
)

// Credentials are those of a Cluster, encrypted by who makes the request. They
// are written with the manifest of the Cluster, which from then on names their
// version; they are in no object, no history and no answer.
type Credentials struct {
	Of      federation.ObjectKey
	Version string // a new one each time; it reveals nothing about the credentials
	Sealed  []byte
}

// secretsOf are the secrets of a commit: the credentials of the request, and none
// any more for a Cluster that goes.
func secretsOf(given []Credentials, writes []config.Change) []config.Secret {
	var all []config.Secret
	for _, c := range given {
		all = append(all, config.Secret{Of: c.Of, Sealed: c.Sealed})
	}
	for _, w := range writes {
		if w.Object == nil && w.Key.Of() == federation.ClusterKind {
			all = append(all, config.Secret{Of: w.Key})
		}
	}
	return all
}

// version is that of the credentials of which a Cluster speaks.
func version(value map[string]any) string {
	m, _ := value["metadata"].(map[string]any)
	return text(m, "annotations", federation.CredentialsAnnotation)
}

// stampCredentials makes a Cluster refer to the credentials of the request, else
// of those that it has. A manifest that names others is refused.
func stampCredentials(given []Credentials, w requested, live, merged map[string]any) *Error {
	if w.key.Of() != federation.ClusterKind {
		return nil
	}
	now := version(live)
	if named := version(w.value); named != "" && named != now {
		fault := w.fault(Code(schema.Invalid), fmt.Sprintf("metadata.annotations[%s]", federation.CredentialsAnnotation),
			"it is written with the credentials, when the cluster is attached or they are rotated: remove it from the manifest")
		return &fault
	}
	for _, c := range given {
		if c.Of == w.key {
			now = c.Version
		}
	}
	setVersion(merged, now)
	return nil
}

// restoreCredentials makes a Cluster that is restored refer to the credentials
// that it has now: those of before are in no history.
func restoreCredentials(key federation.ObjectKey, value, live map[string]any) {
	if key.Of() == federation.ClusterKind {
		setVersion(value, version(live))
	}
}

func setVersion(value map[string]any, version string) {
	m := metadataOf(value)
	annotations, _ := m["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations[federation.CredentialsAnnotation] = version
	if version == "" {
		delete(annotations, federation.CredentialsAnnotation)
	}
	m["annotations"] = annotations
	if len(annotations) == 0 {
		delete(m, "annotations")
	}
}
