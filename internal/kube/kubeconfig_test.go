package kube

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
)

// canary stands where a secret would stand; no error may hold it.
const canary = "CANARY7f3a"

var testNow = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

const simple = `apiVersion: v1
kind: Config
clusters:
- name: k
  cluster: {server: "https://10.0.0.1:6443"}
users:
- name: u
  user: {token: ` + canary + `}
contexts:
- name: c
  context: {cluster: k, user: u}
current-context: c
`

func withUser(fields string) string {
	return strings.Replace(simple, "token: "+canary, fields, 1)
}

func withCluster(fields string) string {
	return strings.Replace(simple, `server: "https://10.0.0.1:6443"`, fields, 1)
}

func withServer(server string) string { return withCluster(fmt.Sprintf("server: %q", server)) }

type issued struct {
	key      crypto.Signer
	from, to time.Time
}

// certificatePEM issues a self-signed certificate.
func certificatePEM(t testing.TB, from issued) []byte {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: from.from, NotAfter: from.to,
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, from.key.Public(), from.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(t testing.TB, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func ecKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func valid(t testing.TB, key crypto.Signer) []byte {
	return certificatePEM(t, issued{key: key, from: testNow.Add(-time.Hour), to: testNow.Add(time.Hour)})
}

func b64(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

func pairFields(certificate, key []byte) string {
	return withUser(fmt.Sprintf("client-certificate-data: %s, client-key-data: %s", b64(certificate), b64(key)))
}

func jwt(t testing.TB, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString(payload) + ".c2ln"
}

func parse(text string) (*Credentials, error) {
	return Parse([]byte(text), ParseOptions{Now: testNow})
}

type refusal struct {
	name, text, field string
	code              Code
}

// refuses checks code and field of each case, and that no value of the input comes back.
func refuses(t *testing.T, cases []refusal) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			credentials, err := parse(c.text)
			var refusal *Refusal
			if credentials != nil || !errors.As(err, &refusal) {
				t.Fatalf("got %+v, %v; want a refusal", credentials, err)
			}
			found := false
			for _, finding := range refusal.Findings {
				found = found || finding.Code == c.code && finding.Field == c.field
			}
			if !found {
				t.Errorf("got %v; want code %q at %q", err, c.code, c.field)
			}
			if strings.Contains(err.Error(), canary) || strings.ContainsAny(err.Error(), "\n\r\x00") {
				t.Errorf("the error repeats a value or a control character: %q", err)
			}
		})
	}
}

func TestParseRebuildsAllowedFields(t *testing.T) {
	key := ecKey(t)
	certificate := valid(t, key)
	expires := testNow.Add(30 * time.Minute)
	text := strings.Replace(simple, "token: "+canary, fmt.Sprintf("token: %s, client-certificate-data: %s, client-key-data: %s",
		jwt(t, map[string]any{"exp": expires.Unix()}), b64(certificate), b64(keyPEM(t, key))), 1)
	text = strings.Replace(text, `server: "https://10.0.0.1:6443"`, fmt.Sprintf(
		`server: "https://API.Example.com:6443/k8s/c-1/", certificate-authority-data: %s, tls-server-name: kubernetes`, b64(certificate)), 1)
	text = strings.Replace(text, "user: u}", "user: u, namespace: default}", 1) + "preferences: {}\n"
	got, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if got.Server != "https://api.example.com:6443/k8s/c-1" || got.ServerName != "kubernetes" || got.Context != "c" {
		t.Errorf("got server %q, name %q, context %q", got.Server, got.ServerName, got.Context)
	}
	if string(got.CA) != string(certificate) || string(got.ClientCertificate) != string(certificate) ||
		got.ClientKey.Reveal() != string(keyPEM(t, key)) {
		t.Error("certificates are not those of the file")
	}
	if !got.Expires.Equal(expires) {
		t.Errorf("expires %v, want the token's end %v", got.Expires, expires)
	}
	if fmt.Sprint(got.Ignored) != "[preferences contexts[0].context.namespace]" {
		t.Errorf("ignored %v", got.Ignored)
	}
}

func TestParseTellsEveryProblem(t *testing.T) {
	_, err := parse(strings.Replace(withUser("exec: {command: "+canary+"}, tokenFile: /x"), `server: "https`,
		`proxy-url: p, server: "http`, 1))
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		t.Fatal(err)
	}
	for _, code := range []Code{CodeExec, CodeFileReference, CodeProxy, CodeServerURL} {
		if !refusal.Has(code) {
			t.Errorf("%v lacks %s", err, code)
		}
	}
	if refusal.Has(CodeNoCredentials) {
		t.Errorf("%v adds a problem that follows from another", err)
	}
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	got, err := parse(simple)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	for _, printed := range []string{fmt.Sprintf("%v %+v %#v %s", got, *got, *got, got.Token), string(encoded), got.Fingerprint()} {
		if strings.Contains(printed, canary) {
			t.Errorf("printed the token: %s", printed)
		}
	}
	if got.Token.Reveal() != canary {
		t.Errorf("token is %q", got.Token.Reveal())
	}
	other, err := parse(strings.Replace(simple, canary, "other", 1))
	if err != nil {
		t.Fatal(err)
	}
	if got.Fingerprint() == other.Fingerprint() {
		t.Error("another token has the same fingerprint")
	}
}

func rsaKey(t *testing.T, bits int) crypto.Signer {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
