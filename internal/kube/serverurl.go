package kube

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"isthmus.dev/isthmus/federation"
)

const (
	maxServerURL = 2048
	maxHost      = 253
)

var (
	hostLabel   = regexp.MustCompile(`\A[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\z`)
	numberLabel = regexp.MustCompile(`\A(0x[0-9a-f]*|[0-9]+)\z`)
	serverPath  = regexp.MustCompile(`\A(/[A-Za-z0-9._~:@-]+)*/?\z`)
)

// serverURL returns the canonical form of an API server's URL, or "" after it reported why not (B-K6, B-K7).
// The address rules here concern literal addresses; names are checked again after DNS, when connecting.
func serverURL(raw, field string, allowLoopback bool, found *findings) string {
	if raw == "" {
		return ""
	}
	parsed, err := url.Parse(raw)
	switch {
	case len(raw) > maxServerURL || err != nil && !strings.Contains(err.Error(), "invalid port"):
		found.add(CodeServerURL, field, "is not a URL; write https://HOST:PORT")
		return ""
	case err != nil:
		found.add(CodeServerURL, field, "the port must be a number from 1 to 65535")
		return ""
	}
	before := len(*found)
	urlParts(parsed, raw, field, found)
	host := serverHost(parsed, field, allowLoopback, found)
	if len(*found) > before {
		return ""
	}
	if port := parsed.Port(); port != "" {
		host += ":" + port
	}
	return "https://" + host + strings.TrimSuffix(parsed.Path, "/")
}

func urlParts(parsed *url.URL, raw, field string, found *findings) {
	if parsed.Scheme != "https" {
		found.add(CodeServerURL, field, "the scheme must be https")
	}
	if parsed.User != nil {
		found.add(CodeServerURL, field, "must not hold a user name or password")
	}
	if strings.ContainsAny(raw, "?#") {
		found.add(CodeServerURL, field, "must not have a query or fragment")
	}
	if parsed.RawPath != "" || !serverPath.MatchString(parsed.Path) || dotSegment(parsed.Path) {
		found.add(CodeServerURL, field, "the path must be plain: no '..', no '//', no escapes")
	}
	port := parsed.Port()
	number, err := strconv.Atoi(port)
	if port != "" && (err != nil || number < 1 || number > 65535) || strings.HasSuffix(parsed.Host, ":") {
		found.add(CodeServerURL, field, "the port must be a number from 1 to 65535")
	}
}

func dotSegment(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// serverHost returns the host in canonical form: lower case, IPv6 in brackets.
func serverHost(parsed *url.URL, field string, allowLoopback bool, found *findings) string {
	host := strings.ToLower(parsed.Hostname())
	if host == "" {
		found.add(CodeServerURL, field, "names no host")
		return ""
	}
	if address, err := netip.ParseAddr(host); err == nil {
		return literalHost(address, field, allowLoopback, found)
	}
	labels := strings.Split(host, ".")
	if numberLabel.MatchString(labels[len(labels)-1]) {
		found.add(CodeServerAddress, field, "is an address in an unusual form; write it as four decimal numbers or as IPv6")
		return ""
	}
	for _, label := range labels {
		if len(host) > maxHost || !hostLabel.MatchString(label) {
			found.add(CodeServerURL, field, "the host is neither a DNS name nor an address")
			return ""
		}
	}
	if labels[len(labels)-1] == "localhost" && !allowLoopback {
		found.add(CodeServerAddress, field, "is this machine itself; loopback API servers are for --dev only")
	}
	return host
}

func literalHost(address netip.Addr, field string, allowLoopback bool, found *findings) string {
	if address.Zone() != "" {
		found.add(CodeServerURL, field, "an IPv6 zone has a meaning on one machine only; omit it")
		return ""
	}
	if reason := refusedAddress(address, allowLoopback); reason != "" {
		found.add(CodeServerAddress, field, reason)
		return ""
	}
	if address.Is4() {
		return address.String()
	}
	return fmt.Sprintf("[%s]", address)
}

// refusedAddress says why no API server may have the address, or "" (B-K7, S39).
func refusedAddress(address netip.Addr, allowLoopback bool) string {
	address = unwrapped(address)
	switch {
	case address.IsLoopback():
		if allowLoopback {
			return ""
		}
		return "is a loopback address; loopback API servers are for --dev only"
	case federation.IsMetadataAddress(address):
		return "is the address of a cloud's metadata service"
	case address.IsLinkLocalUnicast(), address.IsUnspecified(), address.IsMulticast(), address == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "is a link-local, unspecified, multicast or broadcast address; an API server has a unicast address"
	case address.Is4() && address.As4()[0] == 0:
		return "is an address of the range 0.0.0.0/8, which means this machine"
	}
	return ""
}

// unwrapped returns the IPv4 address inside an IPv4-mapped or NAT64 address.
func unwrapped(address netip.Addr) netip.Addr {
	address = address.Unmap()
	if netip.PrefixFrom(netip.AddrFrom16([16]byte{0x00, 0x64, 0xff, 0x9b}), 96).Contains(address) {
		all := address.As16()
		return netip.AddrFrom4([4]byte(all[12:]))
	}
	return address
}

// serverName allows another name than the server's only together with CA data (B-K9).
func serverName(name, field string, hasCA bool, found *findings) string {
	if !hasCA {
		found.add(CodeServerName, field, "needs certificate-authority-data beside it")
	}
	lower := strings.ToLower(name)
	if _, err := netip.ParseAddr(lower); err == nil {
		return lower
	}
	for label := range strings.SplitSeq(lower, ".") {
		if len(lower) > maxHost || !hostLabel.MatchString(label) {
			found.add(CodeServerName, field, "is not a DNS name")
			return ""
		}
	}
	return lower
}
