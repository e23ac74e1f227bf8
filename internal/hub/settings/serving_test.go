package settings

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestU04NamesOfTheHubAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"tls: {names: [hub.example.com, \"2001:db8::1\"], clientCA: c}":          "",
		"tls: {names: [hub.example.com]}":                                        "--tls-client-ca",
		"tls: {names: [Hub.example.com], clientCA: c}":                           `tls.names[0]: "Hub.example.com"`,
		"tls: {names: [hub.example.com, \"*.com\"], clientCA: c}":                "tls.names[1]",
		"tls: {names: [\"\"], clientCA: c}":                                      "tls.names[0]",
		"tls: {names: [hub.example.com], clientCA: c, cert: a}":                  "--tls-cert",
		"tls: {names: [hub.example.com], clientCA: c}\nidentity: {ca: none}":     "identity.ca: none turns off",
		"tls: {names: [hub.example.com], clientCA: c}\nidentity: {ca: files}":    "caDir",
		"tls: {names: [], clientCA: c}":                                          "--tls-cert, --tls-key",
		"tls: {names: [hub.example.com], clientCA: c}\netcd: {quotaBytes: 1024}": "--etcd-quota-bytes",
	} {
		s, err := Resolve(Flags{DataDir: "/data", Config: writeConfig(t, filepath.Join(t.TempDir(), "x.yaml"), text)})
		if want == "" && (err != nil || len(s.TLSNames) != 2) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s gets %v, want %q", text, err, want)
		}
	}
	dev, err := Resolve(Flags{Dev: true, Config: writeConfig(t, filepath.Join(t.TempDir(), "x.yaml"), "tls: {names: [Hub]}")})
	if err != nil || len(dev.TLSNames) > 0 {
		t.Errorf("with --dev the names are %v, %v", dev.TLSNames, err)
	}
}
