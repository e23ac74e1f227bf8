package resource

import (
	"fmt"
	"slices"
	"testing"

	"isthmus.dev/isthmus/client"
)

// TestU37ServicesAreFoundByTheirFirstLabels in their namespace, or by a name that says where
// they are.
func TestU37ServicesAreFoundByTheirFirstLabels(t *testing.T) {
	const (
		web   = "web.shop.svc.cluster.local"
		other = "web.shop.example"
		far   = "web.back.svc.cluster.local"
		cart  = "cart.shop.svc.cluster.local"
	)
	all := []Name{{"shop", web}, {"back", far}, {"shop", cart}, {"shop", "webhooks.shop.svc.cluster.local"}}
	for _, c := range []struct {
		name, in string
		anywhere bool
		more     []Name
		want     string
	}{
		{"web", "shop", false, nil, web},
		{"WEB.shop", "shop", false, nil, web},
		{"web.shop", "default", true, nil, web},
		{web, "default", true, nil, web},
		{"web.shop", "back", false, nil, `services "web.shop" not found in namespace "back"; there is one in namespace "shop": use -n shop`},
		{"cart", "default", false, nil, `services "cart" not found in namespace "default"; there is one in namespace "shop": use -n shop`},
		{"we", "shop", false, nil, `services "we" not found in any namespace; "isthmus get svc -A" lists them`},
		{"web.shop", "shop", true, []Name{{"shop", other}}, `"web.shop" is the name of several services; use one of ` + web + ", " + other},
		{
			web, "default", true,
			[]Name{{"back", web}},
			fmt.Sprintf(`services %q not found in namespace "default"; there is one in namespace "shop": use -n shop`, web),
		},
	} {
		target := Hub(Services)
		target.Word = "svc"
		found, err := choose(target, Name{Namespace: c.in, Name: c.name}, append(slices.Clone(all), c.more...), c.anywhere)
		got := found.Name
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s in %s: %s, want %s", c.name, c.in, got, c.want)
		}
	}
}

func TestU37ProxiesAreToldApartByShortNames(t *testing.T) {
	const third = "~web-1.shop~shop.svc.cluster.local"
	keys := []string{"c1/sidecar~10.0.0.1" + third, "c2/sidecar~10.0.0.1" + third, "c2/sidecar~10.0.0.2" + third}
	if got, want := distinct(keys), []string{"c1/web-1.shop", keys[1], keys[2]}; !slices.Equal(got, want) {
		t.Errorf("they are %q, want %q", got, want)
	}
	cluster := "c1"
	proxy := client.ProxySummary{NodeID: "sidecar~10.0.0.1" + third, ClusterID: &cluster}
	for name, want := range map[string]bool{
		proxy.NodeID: true, keys[0]: true, "c1/web-1.shop": true, "web-1.shop": true, "c2/web-1.shop": false,
		"1.shop": false, "web-1": false, "": false,
	} {
		if isNamed(proxy, name) != want {
			t.Errorf("%q is its name: %t", name, !want)
		}
	}
}
