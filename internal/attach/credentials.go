package attach

import (
	"encoding/json"
	"errors"
	"log/slog"

	"isthmus.dev/isthmus/internal/kube"
)

// Credentials are those of one cluster, as they are kept. The cluster's kind knows what
// its values are.
type Credentials struct {
	Values map[string]kube.Secret
	// UID tells the cluster that they were given for from all others. Empty: nobody has
	// seen it yet, or its kind has none that lasts. It is kept with the credentials because
	// somebody who can put another cluster behind their address must not be able to change
	// it.
	UID string
}

// Value is the one of that name; empty: it was not given.
func (c Credentials) Value(name string) kube.Secret { return c.Values[name] }

// LogValue keeps logs from showing anything of it.
func (Credentials) LogValue() slog.Value { return slog.StringValue("REDACTED") }

// What is sealed is one JSON object, with the values beside these two. A newer version of
// it is refused.
const (
	documentFormat = 1
	formatField    = "credentials"
	uidField       = "uid"
)

func (c Credentials) encode() ([]byte, error) {
	document := map[string]any{formatField: documentFormat}
	for name, value := range c.Values {
		if !value.Empty() {
			document[name] = value.Reveal()
		}
	}
	if c.UID != "" {
		document[uidField] = c.UID
	}
	return json.Marshal(document)
}

var errDocument = errors.New("they are in a form that this version does not know")

func decodeCredentials(data []byte) (Credentials, error) {
	var document map[string]any
	if err := json.Unmarshal(data, &document); err != nil || document[formatField] != float64(documentFormat) {
		return Credentials{}, errDocument // the library's error may repeat them
	}
	c := Credentials{Values: map[string]kube.Secret{}}
	for name, value := range document {
		text, isText := value.(string)
		switch {
		case name == formatField:
		case !isText:
			return Credentials{}, errDocument
		case name == uidField:
			c.UID = text
		default:
			c.Values[name] = kube.NewSecret(text)
		}
	}
	return c, nil
}
