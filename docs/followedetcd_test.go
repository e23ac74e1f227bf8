package docs

import (
	"path/filepath"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

// TestU89AnExternalEtcdIsBackedUpAsInTheGuide follows the pages about an etcd of the reader's own with etcd's tools: a snapshot, an etcd
// that is full (U98), and the restore of the snapshot. The test stops and starts etcd, with the folder that the reader restored.
func TestU89AnExternalEtcdIsBackedUpAsInTheGuide(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	authority := testbed.NewAuthority(t, "etcd")
	etcd := testbed.StartEtcd(t, testbed.EtcdOptions{
		Namespace: m.Namespace, TLS: authority, ExtraArgs: []string{"--quota-backend-bytes=16777216"},
	})
	cert, key := authority.Issue(testbed.Subject{Name: "isthmus"})
	for file, content := range map[string][]byte{"etcd-ca.crt": authority.PEM, "etcd.crt": cert, "etcd.key": key} {
		write(t, filepath.Join(m.dir, "work", file), content)
	}
	for _, tool := range []string{toolset.Etcdctl, toolset.Etcdutl} {
		m.shim(t, tool, "exec "+installed(t, tool)+` "$@"`)
	}
	m.installs(t)
	m.types("sudo install -m 0640 -o root -g isthmus etcd-ca.crt etcd.crt etcd.key /etc/isthmus/")
	m.writes(t, "etcd.yaml", operations, "yaml", "etcd-1.example")
	m.types("grep -v sealKey etcd.yaml | sudo tee -a /etc/isthmus/isthmus.yaml\nsudo systemctl restart isthmus\nisthmus status")
	m.appliesEntry("reviews")
	m.reads(t, operations, "### With an external etcd", "To restore it:")
	m.appliesEntry("ratings")
	m.fillsEtcd(t)
	m.reads(t, operations, "To restore it:", "2. Move the data folder of each member away, and write a new one, here `/var/lib/etcd`. With several members, give each its")
	m.waits(t, "stop", etcd.Wipe)
	m.reads(t, operations, "   documentation](https://etcd.io/docs/v3.6/op-guide/recovery/) says:", "3. Start etcd, with the user that owns the new folder. Then start the hubs:")
	m.waits(t, "start", func() { etcd.Load(filepath.Join(m.dir, "lib", "etcd")) })
	m.reads(t, operations, "3. Start etcd, with the user that owns the new folder. Then start the hubs:", "### Keep manifests")
	m.types("isthmus get serviceentries -n shop > entries\ngrep reviews entries\nif grep ratings entries; then exit 1; fi")
	m.types("isthmus get proxies\nisthmus ca show | grep cluster.local")
	m.appliesEntry("details")
	m.withOwn(`"https://etcd-1.example:2379", "https://etcd-2.example:2379", "https://etcd-3.example:2379"`, `"`+etcd.URL+`"`,
		"https://etcd-1.example:2379", etcd.URL)
	m.do(t, true)
}

// fillsEtcd has the reader find that etcd is full, and free it.
func (m *readersMachine) fillsEtcd(t *testing.T) {
	t.Helper()
	m.types(`head -c 700000 /dev/urandom | base64 > big
for i in $(seq 40); do etcdctl put /filler < big || break; done
again 'isthmus status | grep STORAGE_FULL'
isthmus apply -f ratings.yaml --dry-run=server
sed 's/9080/9081/' ratings.yaml > changed.yaml
isthmus apply -f changed.yaml 2>&1 | grep STORAGE_FULL`)
	m.reads(t, "configuration-sources.md", "## When the store is full", "## When the disk of the store cannot be written")
	m.types("again 'isthmus apply -f changed.yaml'\nagain 'isthmus status > said && ! grep STORAGE_FULL said'")
}
