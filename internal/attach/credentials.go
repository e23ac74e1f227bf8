package attach

import (
	"encoding/json"
	"errors"
	"log/slog"

	"isthmus.dev/isthmus/internal/kube"
)

// Credentials are those of one cluster, as they are kept.
type Credentials struct {
	Kubeconfig kube.Secret
	Token      kube.Secret
	CA, Cert   string
	Key        kube.Secret
	// UID is that of kube-system in the Kubernetes cluster that they were given for.
	// Empty: nobody has seen it yet, or it is a Consul, whose servers come and go. It is kept with the credentials because somebody who
	// can put another cluster behind their address must not be able to change it.
	UID string
}

// LogValue keeps logs from showing anything of it.
func (Credentials) LogValue() slog.Value { return slog.StringValue("REDACTED") }

// credentialsOf are those of a request.
func credentialsOf(r Request) Credentials {
	var c Credentials
	if r.Kubernetes != nil {
		c.Kubeconfig = r.Kubernetes.Kubeconfig
	}
	if r.Consul != nil {
		c.Token, c.CA, c.Cert, c.Key = r.Consul.Token, r.Consul.CA, r.Consul.Cert, r.Consul.Key
	}
	return c
}

// document is what is sealed. A newer version of it is refused.
type document struct {
	Format     int    `json:"credentials"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Token      string `json:"token,omitempty"`
	CA         string `json:"ca,omitempty"`
	Cert       string `json:"cert,omitempty"`
	Key        string `json:"key,omitempty"`
	UID        string `json:"uid,omitempty"`
}

const documentFormat = 1

func (c Credentials) encode() ([]byte, error) {
	return json.Marshal(document{
		Format: documentFormat, Kubeconfig: c.Kubeconfig.Reveal(), Token: c.Token.Reveal(), CA: c.CA, Cert: c.Cert, Key: c.Key.Reveal(), UID: c.UID,
	})
}

var errDocument = errors.New("they are in a form that this version does not know")

func decodeCredentials(data []byte) (Credentials, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil || d.Format != documentFormat {
		return Credentials{}, errDocument // the library's error may repeat them
	}
	return Credentials{
		Kubeconfig: kube.NewSecret(d.Kubeconfig), Token: kube.NewSecret(d.Token), CA: d.CA, Cert: d.Cert, Key: kube.NewSecret(d.Key), UID: d.UID,
	}, nil
}
