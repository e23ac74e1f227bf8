package resource

import (
	"fmt"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
)

func TestServerNames(t *testing.T) {
	long := federation.Hostname(strings.Repeat("a.", 119) + "svc.cluster.local")
	for _, c := range []struct {
		host   federation.Hostname
		subset string
		want   string
	}{
		{"web.shop.svc.cluster.local", "", "outbound_.80_._.web.shop.svc.cluster.local"},
		{"web.shop.svc.cluster.local", "V1", "outbound_.80_.v1_.web.shop.svc.cluster.local"},
		{long, "", "x-"},
		{"a_.b", "", "x-"},
		{"b", "a_", "x-"},
		{"b", "a_.c", "x-"},
		{"a_b.c", "", "outbound_.80_._.a_b.c"},
	} {
		got := ServerName(c.host, 80, c.subset)
		if c.want == "x-" {
			c.want = "outbound_.80_._.x-"
		} else if got != c.want {
			t.Errorf("%s %s: the name is %q", c.host, c.subset, got)
		}
		if !strings.HasPrefix(got, c.want) || len(got) > MaxServerName {
			t.Errorf("%s %s: the name is %q, want %q in front and at most %d bytes", c.host, c.subset, got, c.want, MaxServerName)
		}
	}
}

// No two destinations have one name unless they differ by case alone, and what is
// read is what was written.
func FuzzServerName(f *testing.F) {
	f.Add("web.shop", "v1", "web.shop", "V1", uint16(80))
	f.Add("a_.b", "", "b", "a_", uint16(1))
	f.Add(strings.Repeat("a", 253), "v1", strings.Repeat("a", 253), "v2", uint16(65535))
	f.Fuzz(func(t *testing.T, host, subset, otherHost, otherSubset string, port uint16) {
		if port == 0 || host == "" || otherHost == "" || strings.HasSuffix(host, Shortened) || strings.HasSuffix(otherHost, Shortened) {
			return
		}
		host, otherHost = strings.ToLower(host), strings.ToLower(otherHost)
		name := ServerName(federation.Hostname(host), port, subset)
		if len(name) > MaxServerName || name != strings.ToLower(name) {
			t.Fatalf("the name %q is not a server's", name)
		}
		id, ok := ParseServerName(name)
		if !ok || id.Port != port {
			t.Fatalf("%q is read as %v, %t", name, id, ok)
		}
		if !strings.HasSuffix(string(id.Host), Shortened) && (string(id.Host) != host || id.Subset != strings.ToLower(subset)) {
			t.Fatalf("%q is read as %v", name, id)
		}
		lower, otherLower := strings.ToLower(subset), strings.ToLower(otherSubset)
		same := host == otherHost && lower == otherLower
		if other := ServerName(federation.Hostname(otherHost), port, otherSubset); (other == name) != same {
			t.Fatalf("%q %q and %q %q have the names %q and %q", host, subset, otherHost, otherSubset, name, other)
		}
	})
}

func TestNamesThatAreNoServers(t *testing.T) {
	for _, name := range []string{
		"", "outbound_.80_._.", "outbound_.80_.v1", "outbound_.0_._.web", "outbound_.80_._.a_.b", "outbound_.80_.V1_.web",
		"outbound|80||web", "inbound_.80_._.web", "PassthroughCluster", "xds_cluster", fmt.Sprintf("outbound_.%d_._.web", 1<<16),
	} {
		if id, ok := ParseServerName(name); ok {
			t.Errorf("%q is read as %v", name, id)
		}
	}
}
