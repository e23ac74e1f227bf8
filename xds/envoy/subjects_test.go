package envoy_test

import (
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Everything that builders find is about an endpoint, of which explain tells, or about
// an object or a service, of which the status tells: nothing is said to nobody.
func TestR24EveryReasonIsAboutSomething(t *testing.T) {
	codes := map[string]int{}
	check := func(name string, built map[resource.Type][]builtResource) {
		for _, all := range built {
			for _, r := range all {
				for _, reason := range r.reasons {
					codes[reason.Code]++
					if reason.Endpoint == nil && reason.Cause == (federation.ObjectKey{}) && reason.Service == (federation.ServiceKey{}) {
						t.Errorf("%s: %s: nobody hears of %s %s", name, r.name, reason.Code, reason.Message)
					}
				}
			}
		}
	}
	for _, folder := range []string{"grpc", "virtualservice"} {
		for _, s := range stories(t, folder) {
			check(s.name, buildAll(t, s.proxy, s.world.snapshot))
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "destinationrule", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		check(file, buildAll(t, client(t), readRuleStory(t, file).world.snapshot))
	}
	for _, code := range strings.Fields(resource.ReasonProxyless + " " + resource.ReasonTLS + " " + resource.ReasonRuleIgnored) {
		if codes[code] == 0 {
			t.Errorf("no story has a %s", code)
		}
	}
}
