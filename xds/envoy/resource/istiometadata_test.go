package resource_test

import (
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// TestG85ServicesHaveTheirNamesInMetrics: that of a Service in its namespace, and the hostname of any other.
func TestG85ServicesHaveTheirNamesInMetrics(t *testing.T) {
	for host, want := range map[federation.Hostname]string{
		"web.shop.svc.cluster.local":     "web",
		"web.shop.svc.clusterset.local":  "web",
		"web.bank.svc.cluster.local":     "web.bank.svc.cluster.local", // a ServiceEntry of the namespace shop
		"web.service.consul":             "web.service.consul",
		"api.example.com":                "api.example.com",
		"*.example.com":                  "*.example.com",
		"web.shop.svc":                   "web.shop.svc",
		"localhost":                      "localhost",
		"db-0.db.shop.svc.cluster.local": "db-0.db.shop.svc.cluster.local",
	} {
		said := resource.IstioMetadata(nil, federation.ServiceKey{Hostname: host, Namespace: "shop"})
		service := said.GetFilterMetadata()["istio"].GetFields()["services"].GetListValue().GetValues()[0].GetStructValue().GetFields()
		if got := service["name"].GetStringValue(); got != want || service["host"].GetStringValue() != string(host) {
			t.Errorf("%s is called %s, want %s: %v", host, got, want, service)
		}
	}
}
