package kube

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestBK01Exec(t *testing.T) {
	refuses(t, []refusal{
		{"command", withUser("exec: {apiVersion: client.authentication.k8s.io/v1, command: " + canary + "}"), "users[0].user.exec", CodeExec},
		{"null", withUser("token: t, exec: null"), "users[0].user.exec", CodeExec},
		{
			"in a user that is not used", strings.Replace(simple, "users:", "users:\n- {name: other, user: {exec: {command: x}}}", 1),
			"users[0].user.exec", CodeExec,
		},
		{"other case is not a way around", withUser("token: t, Exec: {}"), "users[0].user.Exec", CodeUnknownField},
	})
}

func TestBK02AuthProvider(t *testing.T) {
	refuses(t, []refusal{{"gcp", withUser("auth-provider: {name: gcp}"), "users[0].user.auth-provider", CodeAuthProvider}})
}

func TestBK03FileReferences(t *testing.T) {
	refuses(t, []refusal{
		{"tokenFile", withUser("tokenFile: /etc/" + canary), "users[0].user.tokenFile", CodeFileReference},
		{"client-certificate", withUser("client-certificate: /a"), "users[0].user.client-certificate", CodeFileReference},
		{"client-key", withUser("client-key: /a"), "users[0].user.client-key", CodeFileReference},
		{
			"certificate-authority", withCluster("server: https://a, certificate-authority: /a"),
			"clusters[0].cluster.certificate-authority", CodeFileReference,
		},
	})
}

func TestBK04InsecureTLS(t *testing.T) {
	refuses(t, []refusal{
		{
			"true", withCluster("server: https://a, insecure-skip-tls-verify: true"),
			"clusters[0].cluster.insecure-skip-tls-verify", CodeInsecureTLS,
		},
		{"text", withCluster(`server: https://a, insecure-skip-tls-verify: "no"`), "clusters[0].cluster.insecure-skip-tls-verify", CodeType},
	})
	if _, err := parse(withCluster("server: https://a, insecure-skip-tls-verify: false")); err != nil {
		t.Errorf("false is refused: %v", err)
	}
}

func TestBK08Proxy(t *testing.T) {
	refuses(t, []refusal{{
		"socks5", withCluster("server: https://a, proxy-url: socks5://" + canary),
		"clusters[0].cluster.proxy-url", CodeProxy,
	}})
}

func TestBK09ServerName(t *testing.T) {
	refuses(t, []refusal{
		{"without CA", withCluster("server: https://a, tls-server-name: b"), "clusters[0].cluster.tls-server-name", CodeServerName},
		{"no name", withCluster("server: https://a, tls-server-name: 'b c'"), "clusters[0].cluster.tls-server-name", CodeServerName},
	})
}

func TestBK10ImpersonationAndPasswords(t *testing.T) {
	var cases []refusal
	for _, field := range []string{"as", "as-uid", "as-groups", "as-user-extra"} {
		cases = append(cases, refusal{field, withUser("token: t, " + field + ": " + canary), "users[0].user." + field, CodeImpersonation})
	}
	for _, field := range []string{"username", "password"} {
		cases = append(cases, refusal{field, withUser(field + ": " + canary), "users[0].user." + field, CodePassword})
	}
	refuses(t, cases)
}

func TestBK11Contexts(t *testing.T) {
	two := strings.Replace(simple, "current-context: c\n", "", 1)
	two = strings.Replace(two, "contexts:\n", "contexts:\n- {name: d, context: {cluster: k, user: u}}\n", 1)
	refuses(t, []refusal{
		{"two and none named", two, "current-context", CodeContext},
		{"absent current", strings.Replace(simple, "current-context: c", "current-context: "+canary, 1), "current-context", CodeContext},
		{"absent user", strings.Replace(simple, "user: u}", "user: "+canary+"}", 1), "contexts[0].context.user", CodeReference},
		{"absent cluster", strings.Replace(simple, "cluster: k,", "cluster: x,", 1), "contexts[0].context.cluster", CodeReference},
		{"no user named", strings.Replace(simple, ", user: u}", "}", 1), "contexts[0].context.user", CodeMissing},
		{"no contexts", "apiVersion: v1\n", "contexts", CodeContext},
		{
			"two of a name", strings.Replace(simple, "contexts:\n", "contexts:\n- {name: c, context: {cluster: k, user: u}}\n", 1),
			"contexts[1].name", CodeDuplicate,
		},
	})
	if _, err := Parse([]byte(two), ParseOptions{Now: testNow, Context: "nope"}); err == nil ||
		!strings.Contains(err.Error(), "context: names a context that is not in the file") {
		t.Errorf("absent named context: %v", err)
	}
	if got, err := Parse([]byte(two), ParseOptions{Now: testNow, Context: "d"}); err != nil || got.Context != "d" {
		t.Errorf("named context: %v, %v", got, err)
	}
	if _, err := parse(strings.Replace(simple, "current-context: c\n", "", 1)); err != nil {
		t.Errorf("the only context is not taken: %v", err)
	}
}

func TestBK12Documents(t *testing.T) {
	bomb := "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n"
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	refuses(t, []refusal{
		{"10 MiB", strings.Repeat("# "+canary+"\n", 10<<20/13), "", CodeTooLarge},
		{"alias bomb", bomb, "line 1", CodeAlias},
		{"unknown alias", "a: *" + canary + "\n", "", CodeAlias},
		{"merge key", "a: &x {b: c}\nd:\n  <<: *x\n", "line 3", CodeAlias},
		{"deep", "preferences: " + deep, "line 1", CodeDepth},
		{"very deep", strings.Repeat("[", 100000), "", CodeDepth},
		{"duplicate key", simple + "kind: Config\n", "line 13", CodeDuplicate},
		{"tab", "apiVersion: v1\nclusters:\n\t- " + canary + "\n", "line 3", CodeTab},
		{"two documents", simple + "---\n" + simple, "", CodeDocuments},
		{"BOM", "\xef\xbb\xbf" + simple, "", CodeEncoding},
		{"UTF-16", "\xff\xfea\x00", "", CodeEncoding},
		{"binary", "\x7fELF\x02\x01\x00", "", CodeEncoding},
		{"empty", " \n", "", CodeMissing},
		{"comment only", "# nothing\n", "", CodeMissing},
		{"broken", "a: [" + canary + "\nb: }", "line 1", CodeSyntax},
		{"list", "- a\n", "", CodeType},
		{"null byte escape", withUser(`token: "a\0b"`), "users[0].user.token", CodeToken},
		{"number as text", withUser("token: 12345"), "users[0].user.token", CodeType},
		{"unknown field", simple + "extensions: []\n", "extensions", CodeUnknownField},
		{"odd key", simple + "? \"" + canary + " x\"\n: 1\n", "(not a field name)", CodeUnknownField},
		{"preferences", simple + "preferences: {colors: true}\n", "preferences", CodeUnknownField},
		{"other kind", strings.Replace(simple, "kind: Config", "kind: Secret", 1), "kind", CodeType},
	})
}

func TestBK13Certificates(t *testing.T) {
	key, other := ecKey(t), ecKey(t)
	good := valid(t, key)
	const certificateField, keyField = "users[0].user.client-certificate-data", "users[0].user.client-key-data"
	expired := certificatePEM(t, issued{key, testNow.Add(-2 * time.Hour), testNow.Add(-time.Hour)})
	future := certificatePEM(t, issued{key, testNow.Add(time.Hour), testNow.Add(2 * time.Hour)})
	small := rsaKey(t, 512)
	//nolint:staticcheck // the deprecated form is what is refused
	legacy, err := x509.EncryptPEMBlock(strings.NewReader(strings.Repeat("r", 64)), "EC PRIVATE KEY", []byte("x"),
		[]byte("p"), x509.PEMCipherAES256)
	if err != nil {
		t.Fatal(err)
	}
	encrypted := pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")})
	refuses(t, []refusal{
		{"mismatch", pairFields(good, keyPEM(t, other)), keyField, CodeKeyMismatch},
		{"encrypted", pairFields(good, encrypted), keyField, CodeEncryptedKey},
		{"encrypted the old way", pairFields(good, pem.EncodeToMemory(legacy)), keyField, CodeEncryptedKey},
		{"expired", pairFields(expired, keyPEM(t, key)), certificateField, CodeExpired},
		{"not yet valid", pairFields(future, keyPEM(t, key)), certificateField, CodeNotYetValid},
		{"junk before", pairFields(append([]byte(canary+"\n"), good...), keyPEM(t, key)), certificateField, CodePEM},
		{"junk after", pairFields(append(good[:len(good):len(good)], canary...), keyPEM(t, key)), certificateField, CodePEM},
		{
			"junk in a block", pairFields(append([]byte("-----BEGIN CERTIFICATE-----\n"+canary+"\n"), good...), keyPEM(t, key)),
			certificateField, CodePEM,
		},
		{"CRLF", pairFields([]byte(strings.ReplaceAll(string(good), "\n", "\r\n")), keyPEM(t, key)), certificateField, CodePEM},
		{"key as certificate", pairFields(keyPEM(t, key), keyPEM(t, key)), certificateField, CodePEM},
		{"certificate as key", pairFields(good, good), keyField, CodePEM},
		{"two keys", pairFields(good, append(keyPEM(t, key), keyPEM(t, other)...)), keyField, CodePEM},
		{
			"no certificate inside", pairFields(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), keyPEM(t, key)),
			certificateField, CodeCertificate,
		},
		{"no base64", withUser("client-certificate-data: '" + canary + "!', client-key-data: eA=="), certificateField, CodeBase64},
		{"no key", withUser("client-certificate-data: " + b64(good)), keyField, CodeMissing},
		{"no certificate", withUser("client-key-data: " + b64(keyPEM(t, key))), certificateField, CodeMissing},
		{"nothing", withUser(""), "users[0].user", CodeNoCredentials},
		{
			"expired CA", withCluster("server: https://a, certificate-authority-data: " + b64(expired)),
			"clusters[0].cluster.certificate-authority-data", CodeExpired,
		},
	})
	weakPEM := keyPEM(t, small)
	public := certificatePEM(t, issued{rsaKey(t, 1024), testNow.Add(-time.Hour), testNow.Add(time.Hour)})
	refuses(t, []refusal{
		{"RSA of 1024 bits", pairFields(public, weakPEM), certificateField, CodeWeakKey},
		{"key of another certificate", pairFields(public, weakPEM), keyField, CodeKeyMismatch},
		{
			"weak CA", withCluster("server: https://a, certificate-authority-data: " + b64(public)),
			"clusters[0].cluster.certificate-authority-data", CodeWeakKey,
		},
	})
}

func TestBK14Tokens(t *testing.T) {
	const field = "users[0].user.token"
	refuses(t, []refusal{
		{"newline inside", withUser(`token: "` + canary + `\nb"`), field, CodeToken},
		{"space", withUser("token: '" + canary + " b'"), field, CodeToken},
		{"two newlines", withUser(`token: "a\n\n"`), field, CodeToken},
		{"empty", withUser(`token: ""`), field, CodeToken},
		{"newline only", withUser(`token: "\n"`), field, CodeToken},
		{"too long", withUser("token: " + strings.Repeat("a", maxToken+1)), field, CodeToken},
		{"not ASCII", withUser("token: ключ"), field, CodeToken},
		{"expired", withUser("token: " + jwt(t, map[string]any{"exp": testNow.Unix()})), field, CodeExpired},
		{"not yet valid", withUser("token: " + jwt(t, map[string]any{"nbf": testNow.Unix() + 60})), field, CodeNotYetValid},
	})
	if got, err := parse(withUser(`token: "abc\n"`)); err != nil || got.Token.Reveal() != "abc" {
		t.Errorf("one trailing newline: %v", err)
	}
	if _, err := parse(withUser("token: " + strings.Repeat("a", maxToken))); err != nil {
		t.Errorf("the longest token: %v", err)
	}
	if got, err := parse(withUser("token: " + jwt(t, map[string]any{"exp": 1e300}))); err != nil || got.Expires.Year() != 9999 {
		t.Errorf("a JWT that ends never: %v", err)
	}
}

func TestBK15ClusterID(t *testing.T) {
	for _, id := range []string{"a", "c1", "eu-west-1", strings.Repeat("a", 63), "1"} {
		if err := ValidateClusterID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"", strings.Repeat("a", 64), "../x", "A", "-a", "a-", "a.b", "a_b", "а", "a\n", "a b"} {
		if ValidateClusterID(id) == nil {
			t.Errorf("%q is accepted", id)
		}
	}
}

// TestBK01NoPluginIsLinked looks at the package lists (S44): the auth plug-ins of client-go register themselves when linked.
func TestBK01NoPluginIsLinked(t *testing.T) {
	output, err := exec.Command("go", "list", "-e", "-deps", "isthmus.dev/isthmus/internal/kube", "isthmus.dev/isthmus/cmd/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	const plugins = "k8s.io/client-go/plugin/pkg/client/auth"
	listed := map[string]bool{}
	for name := range strings.Lines(string(output)) {
		listed[strings.TrimSpace(name)] = true
	}
	if !listed["k8s.io/client-go/rest"] {
		t.Fatal("the list lacks client-go itself")
	}
	for name := range listed {
		if name != plugins+"/exec" && (name == plugins || strings.HasPrefix(name, plugins+"/")) {
			t.Errorf("%s is linked", name)
		}
	}
}

func TestFindingsAreBounded(t *testing.T) {
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "x%d: 1\n", i)
	}
	_, err := parse(text.String())
	if err == nil || len(err.Error()) > 20000 || !strings.Contains(err.Error(), tooManyFindingsText) {
		t.Errorf("got an error of %d bytes", len(fmt.Sprint(err)))
	}
}
