package kube

import (
	"strings"
	"testing"
)

const serverField = "clusters[0].cluster.server"

func TestBK06ServerURL(t *testing.T) {
	var cases []refusal
	for _, server := range []string{
		"http://a:6443", "unix:///run/x", "file:///etc/passwd", "a:6443", "//a", "https://", "https://:6443",
		"https://user:" + canary + "@a", "https://user@a", "https://a?x=" + canary, "https://a?", "https://a#f", "https://a#",
		"https://a/..", "https://a/x/../y", "https://a/%2e%2e/x", "https://a//x", "https://a/x%2fy", `https://a/x\y`, "https://a/.",
		"https://a:0", "https://a:70000", "https://a:", "https://a:https", "https://a:-1",
		"https://[fe80::1%25eth0]:6443", "https://[fd00::1%25lo]", "https://a b", "https://a_b", "https://münchen.example",
		"https://a..b", "https://a.",
		"https://" + strings.Repeat("a.", 130) + "b", "https://a/" + strings.Repeat("x", 3000), "https://[::1", "https://a\x00b", "HTTP://a",
	} {
		cases = append(cases, refusal{server, withServer(server), serverField, CodeServerURL})
	}
	cases = append(cases, refusal{"empty", withServer(""), serverField, CodeMissing},
		refusal{"absent", withCluster(""), serverField, CodeMissing})
	refuses(t, cases)
}

func TestBK06ServerURLCanonical(t *testing.T) {
	for server, want := range map[string]string{
		"https://10.0.0.1":                       "https://10.0.0.1",
		"https://10.0.0.1:6443/":                 "https://10.0.0.1:6443",
		"HTTPS://Api.Example:443/k8s/clusters/c": "https://api.example:443/k8s/clusters/c",
		"https://[FD00::0:1]:6443":               "https://[fd00::1]:6443",
	} {
		got, err := parse(withServer(server))
		if err != nil || got.Server != want {
			t.Errorf("%s: got %v, %v; want %s", server, got, err, want)
		}
	}
}

func TestBK07ServerAddress(t *testing.T) {
	var cases []refusal
	for _, host := range []string{
		"127.0.0.1", "127.8.9.10", "localhost", "api.localhost", "LOCALHOST", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]",
		"169.254.169.254", "169.254.1.1", "100.100.100.200", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "[fe80::1]",
		"0.0.0.0", "0.1.2.3", "[::]", "224.0.0.1", "[ff02::1]", "255.255.255.255",
		"2130706433", "0x7f.1", "0x7f000001", "127.1", "0177.0.0.1", "1.2.3", "1.2.3.4.5", "999.1.1.1",
	} {
		cases = append(cases, refusal{host, withServer("https://" + host + ":6443"), serverField, CodeServerAddress})
	}
	refuses(t, cases)
}

// TestR12MetadataServers: the metadata services of Azure and Oracle Cloud are not API servers.
func TestR12MetadataServers(t *testing.T) {
	var cases []refusal
	for _, host := range []string{"168.63.129.16", "192.0.0.192", "[::ffff:168.63.129.16]", "[64:ff9b::a83f:8110]"} {
		cases = append(cases, refusal{host, withServer("https://" + host + ":6443"), serverField, CodeServerAddress})
	}
	refuses(t, cases)
}

func TestBK07LoopbackInDev(t *testing.T) {
	allowed := ParseOptions{Now: testNow, AllowLoopback: true}
	for _, host := range []string{"127.0.0.1:6443", "localhost:6443", "[::1]:6443"} {
		if _, err := Parse([]byte(withServer("https://"+host)), allowed); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"169.254.169.254", "2130706433", "0.0.0.0", "[fe80::1]"} {
		if _, err := Parse([]byte(withServer("https://"+host)), allowed); err == nil {
			t.Errorf("%s is accepted", host)
		}
	}
}
