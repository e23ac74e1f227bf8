package federation_test

import (
	"fmt"
	"testing"

	"isthmus.dev/isthmus/federation"
)

// TestK95AddressesAndPortsAreReadByOneRule: an address is written in its usual form and has no zone; a port is from 1 to 65535, and no
// number wraps around to one.
func TestK95AddressesAndPortsAreReadByOneRule(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", "fd00::1": "fd00::1", "::ffff:10.0.0.1": "10.0.0.1",
		"10.0.0.01": "not an IP address in its usual form", "127.1": "not an IP address in its usual form",
		"": "not an IP address in its usual form", "web": "not an IP address in its usual form",
		"fe80::1%eth0": "an IP address with a zone",
	} {
		ip, err := federation.ParseIP(text)
		got := ip.String()
		if err != nil {
			got = err.Error()
		}
		if got != want || (err != nil) == ip.IsValid() {
			t.Errorf("%q is read as %s, want %s", text, got, want)
		}
	}
	for number, want := range map[int32]string{0: "0 false", 1: "1 true", 65535: "65535 true", 65536: "0 false", 65537: "0 false", -1: "0 false"} {
		port, ok := federation.PortNumber(number)
		large, is := federation.PortNumber(uint32(number))
		if got := fmt.Sprint(port, " ", ok); got != want || large != port || is != ok {
			t.Errorf("%d is read as %s and %d %t, want %s", number, got, large, is, want)
		}
	}
}
