package identity

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"isthmus.dev/isthmus/deploy/testbed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// drawer is a folder of secrets and what is kept of it.
type drawer struct {
	t       *testing.T
	root    string // the folder of secrets
	dir     string // that of the namespace edge, in it
	now     time.Time
	secrets *Secrets
	folder  *Folder
	ca      *testbed.Authority
}

func newDrawer(t *testing.T) *drawer {
	root := t.TempDir()
	d := &drawer{t: t, root: root, dir: filepath.Join(root, "edge"), now: time.Now(), ca: testbed.NewAuthority(t, "canary")}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d.secrets = New(Options{Now: func() time.Time { return d.now }})
	return d
}

func (d *drawer) open() *drawer {
	d.t.Helper()
	var err error
	d.folder, err = OpenFolder(d.root, d.secrets, FolderOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { d.folder.Close() })
	return d
}

func (d *drawer) write(path string, content []byte, mode os.FileMode) {
	d.t.Helper()
	path = filepath.Join(d.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		d.t.Fatal(err)
	}
}

// pair writes a new certificate and key into the folder of that name.
func (d *drawer) pair(name string, s testbed.Subject) (cert, key []byte) {
	d.t.Helper()
	cert, key = d.ca.Issue(s)
	d.write(name+"/tls.crt", cert, 0o644)
	d.write(name+"/tls.key", key, 0o600)
	return cert, key
}

func (d *drawer) secret(name string, authorities bool) string {
	s, ok := d.secrets.Secret(Ref{Cluster: "c1", Namespace: "edge", Name: name, Authorities: authorities})
	if !ok {
		return ""
	}
	return string(s.Material.Chain) + string(s.Material.Key) + string(s.Material.Authorities)
}

// problems are the codes and objects of what is wrong; nothing of it may tell
// what is in the files.
func (d *drawer) problems() string {
	d.t.Helper()
	all, _ := d.secrets.Problems()
	var text []string
	for _, p := range all {
		text = append(text, p.Code+" "+p.Object)
		if said := fmt.Sprint(p); strings.Contains(said, "BEGIN") || strings.Contains(said, "canary") || strings.Contains(said, d.root) {
			d.t.Errorf("a problem tells too much: %s", said)
		}
	}
	return strings.Join(text, "; ")
}

func TestSecretsOfAFolder(t *testing.T) {
	d := newDrawer(t)
	cert, key := d.pair("web", testbed.Subject{Name: "web", NotAfter: d.now.Add(30 * 24 * time.Hour)})
	d.write("web/ca.crt", d.ca.PEM, 0o644)
	d.write("partners-cacert/cacert", d.ca.PEM, 0o644)
	d.write("both/ca.crt", d.ca.PEM, 0o644)
	d.write("both-cacert/ca.crt", append([]byte("\n"), d.ca.PEM...), 0o644)
	d.write(".hidden/tls.crt", cert, 0o644)
	d.write("Upper/tls.crt", cert, 0o644)
	d.open()
	for ref, want := range map[Ref]string{
		{Name: "web"}:                                 string(cert) + string(key),
		{Name: "web", Authorities: true}:              string(d.ca.PEM),
		{Name: "partners", Authorities: true}:         string(d.ca.PEM),
		{Name: "both", Authorities: true}:             string(d.ca.PEM),
		{Name: "both"}:                                "",
		{Name: "nobody"}:                              "",
		{Name: ".hidden"}:                             "",
		{Name: "../" + filepath.Base(d.dir) + "/web"}: "",
	} {
		if got := d.secret(ref.Name, ref.Authorities); got != want {
			t.Errorf("%+v is %d bytes, want %d", ref, len(got), len(want))
		}
	}
}

// TestK54AuthoritiesComeWithWhatTheyRevoked: a list that cannot be used changes nothing, and is
// never replaced by none.
func TestK54AuthoritiesComeWithWhatTheyRevoked(t *testing.T) {
	d := newDrawer(t)
	list := d.ca.Revoke()
	d.write("web/ca.crt", d.ca.PEM, 0o644)
	d.write("web/ca.crl", list, 0o644)
	d.write("generic/cacert", d.ca.PEM, 0o644)
	d.write("generic/crl", list, 0o644)
	d.write("broken/ca.crt", d.ca.PEM, 0o644)
	d.write("broken/ca.crl", d.ca.PEM, 0o644)
	d.open()
	lists := func(name string) string {
		s, _ := d.secrets.Secret(Ref{Namespace: "edge", Name: name, Authorities: true})
		return string(s.Material.CRL)
	}
	if lists("web") != string(list) || lists("generic") != string(list) {
		t.Errorf("the lists are %q and %q", lists("web"), lists("generic"))
	}
	if d.secret("broken", true) != "" || !strings.Contains(d.problems(), ProblemUnusable+" secret edge/broken-cacert") {
		t.Errorf("a list that is none: %q, %q", d.secret("broken", true), d.problems())
	}
	d.write("web/ca.crl", []byte("-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"), 0o644)
	d.folder.reload()
	d.folder.reload()
	if lists("web") != string(list) {
		t.Errorf("after a list that cannot be read: %q", lists("web"))
	}
}

// A pair that is not whole yet changes nothing; one that stays broken is shown,
// and the last good one stays.
func TestBY4HalfWrittenSecretsKeepTheLast(t *testing.T) {
	d := newDrawer(t)
	long := testbed.Subject{Name: "web", NotAfter: d.now.Add(30 * 24 * time.Hour)}
	cert, key := d.pair("web", long)
	d.open()
	newCert, newKey := d.ca.Issue(long)
	d.write("web/tls.crt", newCert, 0o644)
	if again := d.folder.reload(); !again || d.problems() != "" || d.secret("web", false) != string(cert)+string(key) {
		t.Errorf("between the two files: again %t, problems %q", again, d.problems())
	}
	d.write("web/tls.key", newKey, 0o600)
	d.folder.reload()
	if d.problems() != "" || d.secret("web", false) != string(newCert)+string(newKey) {
		t.Errorf("after both files: problems %q", d.problems())
	}
	for name, broken := range map[string][]byte{"empty": nil, "no PEM": []byte("canary"), "cut": newKey[:len(newKey)/2], "another's": key} {
		d.write("web/tls.key", broken, 0o600)
		d.folder.reload()
		d.folder.reload()
		if d.problems() != ProblemUnusable+" secret edge/web" || d.secret("web", false) != string(newCert)+string(newKey) {
			t.Errorf("%s: problems %q", name, d.problems())
		}
	}
	d.secrets.Follow(Ref{Name: "web"})() // a proxy without cluster and namespace goes
	d.write("web/tls.key", newKey, 0o600)
	d.folder.reload()
	if d.problems() != "" || d.secret("web", false) == "" {
		t.Errorf("after it was put right: %q", d.problems())
	}
	if err := os.RemoveAll(filepath.Join(d.dir, "web")); err != nil {
		t.Fatal(err)
	}
	d.folder.reload()
	if d.secret("web", false) == "" {
		t.Error("gone after one look")
	}
	d.folder.reload()
	if d.secret("web", false) != "" {
		t.Error("still there when it is gone")
	}
}

func TestBY5BY6FilesThatAreRefused(t *testing.T) {
	d := newDrawer(t)
	outside := t.TempDir()
	cert, key := d.ca.Issue(testbed.Subject{Name: "web"})
	if err := os.WriteFile(filepath.Join(outside, "tls.key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(path string) error{
		"link":   func(path string) error { return os.Symlink(filepath.Join(outside, "tls.key"), path) },
		"up":     func(path string) error { return os.Symlink("../../../../etc/shadow", path) },
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"world":  func(path string) error { return os.WriteFile(path, key, 0o644) },
		"group":  func(path string) error { return os.WriteFile(path, key, 0o660) },
		"huge":   func(path string) error { return os.WriteFile(path, make1MiB(), 0o600) },
	} {
		d.write(name+"/tls.crt", cert, 0o644)
		path := filepath.Join(d.dir, name, "tls.key")
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if name == "world" || name == "group" {
			if err := os.Chmod(path, map[string]os.FileMode{"world": 0o644, "group": 0o660}[name]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Symlink(outside, filepath.Join(d.dir, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	d.open()
	for _, name := range []string{"link", "up", "pipe", "folder", "world", "group", "huge"} {
		if d.secret(name, false) != "" || !strings.Contains(d.problems(), ProblemUnusable+" secret edge/"+name) {
			t.Errorf("%s is not refused: %q", name, d.problems())
		}
	}
	if strings.Contains(d.problems(), "elsewhere") || d.secret("elsewhere", false) != "" {
		t.Errorf("a link out of the folder was followed: %q", d.problems())
	}
}

func make1MiB() []byte { return make([]byte, maxPart+1) }

func TestS31CertificatesThatEndSoonAreShown(t *testing.T) {
	d := newDrawer(t)
	d.pair("soon", testbed.Subject{Name: "a", NotAfter: d.now.Add(13 * 24 * time.Hour)})
	d.pair("over", testbed.Subject{Name: "b", NotBefore: d.now.Add(-2 * time.Hour), NotAfter: d.now.Add(-time.Hour)})
	d.pair("later", testbed.Subject{Name: "c", NotAfter: d.now.Add(15 * 24 * time.Hour)})
	d.open()
	all := d.problems()
	if !strings.Contains(all, ProblemExpires+" secret edge/soon") || !strings.Contains(all, ProblemExpires+" secret edge/over") ||
		strings.Contains(all, "later") {
		t.Errorf("problems are %q", all)
	}
	if d.secret("over", false) == "" {
		t.Error("a certificate that has ended is not given: a restart would make it worse")
	}
	d.now = d.now.Add(48 * time.Hour)
	d.folder.reload()
	if !strings.Contains(d.problems(), "later") {
		t.Errorf("two days later problems are %q", d.problems())
	}
}

// Kubernetes swaps a link when it rotates what it mounted.
func TestX23FolderIsFollowedWithinASecond(t *testing.T) {
	d := newDrawer(t)
	long := testbed.Subject{Name: "web", NotAfter: d.now.Add(30 * 24 * time.Hour)}
	generation := func(name string) (cert, key []byte) {
		cert, key = d.ca.Issue(long)
		d.write("web/"+name+"/tls.crt", cert, 0o644)
		d.write("web/"+name+"/tls.key", key, 0o640)
		link := filepath.Join(d.dir, "web", "..new")
		if err := os.Symlink(name, link); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link, filepath.Join(d.dir, "web", "..data")); err != nil {
			t.Fatal(err)
		}
		return cert, key
	}
	generation("..one")
	for _, part := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink("..data/"+part, filepath.Join(d.dir, "web", part)); err != nil {
			t.Fatal(err)
		}
	}
	d.open()
	d.folder.options.Poll = time.Hour // the file system tells
	if d.secret("web", false) == "" {
		t.Fatalf("there is no secret: %q", d.problems())
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.folder.Run(ctx) }()
	name := "..two"
	testbed.Within(t, time.Second, func() time.Duration {
		name += "x"
		start := time.Now()
		cert, key := generation(name)
		for changed := d.secrets.Changed(); d.secret("web", false) != string(cert)+string(key); changed = d.secrets.Changed() {
			await(t, changed)
		}
		return time.Since(start)
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// await waits for a change for as long as it may take on a busy machine.
func await(t *testing.T, changed <-chan struct{}) {
	t.Helper()
	timer := time.NewTimer(50 * time.Second) // less than until the next poll
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
		t.Fatal("nothing changed")
	}
}

func TestFolderThatIsNone(t *testing.T) {
	if _, err := OpenFolder(filepath.Join(t.TempDir(), "nothing"), New(Options{}), FolderOptions{}); err == nil {
		t.Error("it was opened")
	}
}
