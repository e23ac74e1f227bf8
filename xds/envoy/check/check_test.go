package check_test

import (
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/xds/envoy/check"
)

// judge is what is wrong with the resource, and nothing if it may be sent.
func judge(t *testing.T, m proto.Message, text string) string {
	t.Helper()
	if err := protojson.Unmarshal([]byte("{"+text+"}"), m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := check.Resource(m); err != nil {
		return err.Error()
	}
	return ""
}

// row is a resource and words of what is wrong with it; none: it may be sent.
type row struct{ given, want string }

func compare(t *testing.T, rows map[string]row, judged func(t *testing.T, given string) string) {
	t.Helper()
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			got := judged(t, r.given)
			if (got == "") != (r.want == "") || !strings.Contains(got, r.want) {
				t.Errorf("it is refused with %q, want words with %q", got, r.want)
			}
		})
	}
}

func TestG89Clusters(t *testing.T) {
	at := func(address string) string {
		return fmt.Sprintf(`{"endpoint": {"address": {"socketAddress": {"address": %q, "portValue": 80}}}}`, address)
	}
	among := func(endpoints ...string) string {
		return `, "loadAssignment": {"clusterName": "c", "endpoints": [{"locality": {}, "loadBalancingWeight": 1, "lbEndpoints": [` +
			strings.Join(endpoints, ", ") + `]}]}`
	}
	tls := func(common string) string {
		return `, "transportSocket": {"name": "tls", "typedConfig": {"@type":
			"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "commonTlsContext": {` + common + `}}}`
	}
	extension := func(name, more string) string {
		return `"clusterType": {"name": "` + name + `", "typedConfig":
			{"@type": "type.googleapis.com/google.protobuf.Struct", "value": {}}}` + more
	}
	compare(t, map[string]row{
		"EDS":                   {`"type": "EDS", "edsClusterConfig": {"edsConfig": {"ads": {}}}`, ""},
		"EDS of another name":   {`"type": "EDS", "edsClusterConfig": {"serviceName": "d", "edsConfig": {"ads": {}}}`, "not the cluster's own name"},
		"EDS of a file":         {`"type": "EDS"`, "endpoints do not come by ADS"},
		"names by DNS":          {`"type": "STRICT_DNS"` + among(at("a.com"), at("b.com")), ""},
		"one name by DNS":       {`"type": "LOGICAL_DNS"` + among(at("a.com")), ""},
		"two names as one":      {`"type": "LOGICAL_DNS"` + among(at("a.com"), at("b.com")), "needs one endpoint, this has 2"},
		"no name":               {`"type": "STRICT_DNS"` + among(at("")), "neither a name nor an IP address"},
		"addresses":             {`"type": "STATIC"` + among(at("10.0.0.1"), at("2001:db8::1")), ""},
		"a socket":              {`"type": "STATIC"` + among(`{"endpoint": {"address": {"pipe": {"path": "/run/a"}}}}`), ""},
		"a name in STATIC":      {`"type": "STATIC"` + among(at("10.0.0.1"), at("a.com")), `lb_endpoints[1]: "a.com" is not an IP address; a cluster of names has the type STRICT_DNS`},
		"names of Redis":        {extension("envoy.clusters.redis", `, "lbPolicy": "CLUSTER_PROVIDED"`+among(at("a.com"), at("b.com"))), ""},
		"names of an extension": {extension("envoy.clusters.dns", among(at("a.com"))), ""},
		"an extension's ring":   {extension("envoy.clusters.redis", `, "lbPolicy": "MAGLEV", "maglevLbConfig": {"tableSize": "65536"}`), "65536 is not a prime number"},
		"callers choose":        {`"type": "ORIGINAL_DST", "lbPolicy": "CLUSTER_PROVIDED"`, ""},
		"callers and Envoy do":  {`"type": "ORIGINAL_DST"`, "needs CLUSTER_PROVIDED"},
		"nobody chooses":        {`"type": "STATIC", "lbPolicy": "CLUSTER_PROVIDED"`, "is for ORIGINAL_DST clusters"},
		"the largest ring":      {`"lbPolicy": "RING_HASH", "ringHashLbConfig": {"minimumRingSize": "8388608"}`, ""},
		"a ring of nothing":     {`"lbPolicy": "RING_HASH", "ringHashLbConfig": {"minimumRingSize": "9", "maximumRingSize": "8"}`, "9 is more than the largest ring, 8"},
		"a table":               {`"lbPolicy": "MAGLEV", "maglevLbConfig": {"tableSize": "5000011"}`, ""},
		"a table of no prime":   {`"lbPolicy": "MAGLEV", "maglevLbConfig": {"tableSize": "65536"}`, "65536 is not a prime number"},
		"a table too large":     {`"lbPolicy": "MAGLEV", "maglevLbConfig": {"tableSize": "5000077"}`, "up to 5000011"},
		"TLS":                   {tls(`"validationContext": {"trustedCa": {"filename": "/ca"}, "matchTypedSubjectAltNames": [{"sanType": "DNS", "matcher": {"exact": "a"}}]}`)[2:], ""},
		"names without roots":   {tls(`"validationContext": {"matchTypedSubjectAltNames": [{"sanType": "DNS", "matcher": {"exact": "a"}}]}`)[2:], "mean nothing without trusted_ca"},
		"versions of TLS":       {tls(`"tlsParams": {"tlsMinimumProtocolVersion": "TLSv1_3", "tlsMaximumProtocolVersion": "TLSv1_2"}`)[2:], "TLSv1_3, is above the greatest"},
		"half a certificate":    {tls(`"tlsCertificates": [{"certificateChain": {"filename": "/c"}}]`)[2:], "tls_certificates[0] has no certificate or no key"},
		"time before the start": {`"connectTimeout": "-1s"`, "value must be greater than 0s"},
	}, func(t *testing.T, given string) string {
		return judge(t, &clusterv3.Cluster{}, `"name": "c", `+given)
	})
}

func TestG89Endpoints(t *testing.T) {
	group := func(region string, more string) string {
		return `{"locality": {"region": "` + region + `"}, "loadBalancingWeight": 1` + more + `}`
	}
	endpoint := func(address string, port int) string {
		return fmt.Sprintf(`{"endpoint": {"address": {"socketAddress": {"address": %q, "portValue": %d}}}}`, address, port)
	}
	has := func(endpoints ...string) string { return `, "lbEndpoints": [` + strings.Join(endpoints, ", ") + `]` }
	compare(t, map[string]row{
		"none":                    {"", ""},
		"two regions":             {group("a", "") + ", " + group("b", ""), ""},
		"a region twice":          {group("a", "") + ", " + group("a", ""), `endpoints[1]: locality "a"/""/"" at priority 0 is there twice`},
		"two priorities":          {group("a", "") + ", " + group("a", `, "priority": 1`), ""},
		"a gap in priorities":     {group("a", "") + ", " + group("b", `, "priority": 2`), "nothing has priority 1"},
		"no locality":             {`{"loadBalancingWeight": 1}`, "locality is missing"},
		"no weight":               {`{"locality": {}}`, "load_balancing_weight of locality"},
		"an address":              {group("a", has(endpoint("10.0.0.1", 80), endpoint("10.0.0.1", 81))), ""},
		"an address twice":        {group("a", has(endpoint("10.0.0.1", 80), endpoint("10.0.0.1", 80))), "lb_endpoints[1]: 10.0.0.1 port 80 is there twice"},
		"twice in two regions":    {group("a", has(endpoint("10.0.0.1", 80))) + ", " + group("b", has(endpoint("10.0.0.1", 80))), "endpoints[1]: lb_endpoints[0]: 10.0.0.1"},
		"a name":                  {group("a", has(endpoint("a.com", 80))), `"a.com" is not an IP address to send to`},
		"every address":           {group("a", has(endpoint("0.0.0.0", 80))), `"0.0.0.0" is not an IP address to send to`},
		"an address with a zone":  {group("a", has(endpoint("fe80::1%eth0", 80))), "is not an IP address to send to"},
		"no port":                 {group("a", has(endpoint("10.0.0.1", 0))), "port 0 is not in 1 to 65535"},
		"a path that is too long": {group("a", has(`{"endpoint": {"address": {"pipe": {"path": "/`+strings.Repeat("x", 107)+`"}}}}`)), "is empty or too long"},
		"weights of a locality":   {group("a", has(weighed("10.0.0.1"), weighed("10.0.0.2"))), "the weights of locality"},
	}, func(t *testing.T, given string) string {
		return judge(t, &endpointv3.ClusterLoadAssignment{}, `"clusterName": "c", "endpoints": [`+given+`]`)
	})
}

func weighed(address string) string {
	return `{"loadBalancingWeight": 4294967295, "endpoint": {"address": {"socketAddress": {"address": "` + address + `", "portValue": 80}}}}`
}

func TestG89FilterChains(t *testing.T) {
	chain := func(match string) string {
		return `{"filterChainMatch": {` + match + `}, "filters": [{"name": "f", "typedConfig":
			{"@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "statPrefix": "s", "cluster": "c"}}]}`
	}
	chains := func(matches ...string) string {
		for i, match := range matches {
			matches[i] = chain(match)
		}
		return `"filterChains": [` + strings.Join(matches, ", ") + "]"
	}
	many := make([]string, 1100)
	for i := range many {
		many[i] = fmt.Sprintf(`"n%d.com"`, i)
	}
	names, sources := strings.Join(many, ", "), make([]string, 1100)
	for i := range sources {
		sources[i] = fmt.Sprint(i + 1)
	}
	tooMany := `"serverNames": [` + names + `], "sourcePorts": [` + strings.Join(sources, ", ") + `]`
	compare(t, map[string]row{
		"one chain":                    {chains(``), ""},
		"no chain":                     {`"trafficDirection": "INBOUND"`, "filter_chains: there is none"},
		"no filter":                    {`"filterChains": [{}]`, "filter_chains[0]: there is no filter"},
		"the default without a filter": {chains(`"destinationPort": 1`) + `, "defaultFilterChain": {}`, "filter_chains[1]: there is no filter"},
		"two chains for everything":    {chains(``, ``), "filter_chains[1]: another chain has the same match: every connection"},
		"two names":                    {chains(`"serverNames": ["a.com"]`, `"serverNames": ["b.com"]`), ""},
		"a name and all others":        {chains(`"serverNames": ["a.com"]`, ``), ""},
		"a name and its wildcard":      {chains(`"serverNames": ["a.b.com"]`, `"serverNames": ["*.b.com"]`), ""},
		"names in common":              {chains(`"serverNames": ["a.com", "b.com"]`, `"serverNames": ["b.com", "c.com"]`), "same match: server name b.com"},
		"a name twice":                 {chains(`"serverNames": ["a.com", "a.com"]`), "filter_chains[0]: another chain has the same match: server name a.com"},
		"a name at two ports":          {chains(`"destinationPort": 1, "serverNames": ["a.com"]`, `"destinationPort": 2, "serverNames": ["a.com"]`), ""},
		"a name of two protocols":      {chains(`"serverNames": ["a.com"], "applicationProtocols": ["h2"]`, `"serverNames": ["a.com"], "applicationProtocols": ["istio"]`), ""},
		"one protocol in common":       {chains(`"applicationProtocols": ["h2", "istio"]`, `"applicationProtocols": ["istio"]`), "protocol istio"},
		"a wildcard within":            {chains(`"serverNames": ["a*.com"]`), `the server name "a*.com" has a wildcard that is not the first label`},
		"a wildcard for all":           {chains(`"serverNames": ["*"]`), "has a wildcard that is not the first label"},
		"a wildcard of nothing":        {chains(`"serverNames": ["*a.com"]`), "has a wildcard that is not the first label"},
		"wildcards after the first":    {chains(`"serverNames": ["*.*.example", "*.a*.example"]`), ""},
		"two blocks":                   {chains(`"prefixRanges": [{"addressPrefix": "10.0.0.0", "prefixLen": 8}]`, `"prefixRanges": [{"addressPrefix": "10.0.0.0", "prefixLen": 16}]`), ""},
		"one block in two forms":       {chains(`"prefixRanges": [{"addressPrefix": "10.0.0.0", "prefixLen": 8}]`, `"prefixRanges": [{"addressPrefix": "10.9.9.9", "prefixLen": 8}]`), "address 10.0.0.0/8"},
		"a caller's block":             {chains(`"sourcePrefixRanges": [{"addressPrefix": "::1", "prefixLen": 128}]`, `"sourcePorts": [1, 2]`, `"sourcePorts": [2]`), "source port 2"},
		"raw bytes and TLS":            {chains(`"transportProtocol": "tls"`, `"transportProtocol": "raw_buffer"`, `"sourceType": "EXTERNAL"`), ""},
		"a matcher chooses":            {chains(``, ``) + `, "filterChainMatcher": {}`, ""},
		"more than can be compared":    {chains(tooMany, ``), ""},
		"too many for two chains":      {chains(``, tooMany, tooMany), "filter_chains[2]: filter_chains[1] has the same match"},
		"too many, and a wildcard":     {chains(tooMany, `"serverNames": ["a*.com"]`), `filter_chains[1]: the server name "a*.com"`},
		"too many, and a name twice":   {chains(tooMany, `"serverNames": ["a.com"]`, `"serverNames": ["a.com"]`), "filter_chains[2]: another chain has the same match: server name a.com"},
		"as many as can be":            {chains(`"serverNames": [`+names+`]`, `"serverNames": ["n1099.com"]`), "server name n1099.com"},
	}, func(t *testing.T, given string) string {
		return judge(t, &listenerv3.Listener{}, `"name": "l", "address": {"socketAddress": {"address": "0.0.0.0", "portValue": 80}}, `+given)
	})
}

func TestG89PlacesToListen(t *testing.T) {
	datagrams := `{"socketAddress": {"protocol": "UDP", "address": "10.0.0.1", "portValue": 53}}`
	compare(t, map[string]row{
		"a name":                   {`"address": {"socketAddress": {"address": "localhost", "portValue": 80}}`, `"localhost" is not an IP address`},
		"no port":                  {`"address": {"socketAddress": {"address": "10.0.0.1", "portValue": 0}}`, "port 0"},
		"datagrams without filter": {`"address": ` + datagrams, "a listener for UDP has one, and no filter chain"},
		"routes of gRPC": {
			`"apiListener": {"apiListener": {"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"}}`,
			"routes do not come by ADS",
		},
		"gRPC without a filter": {
			`"apiListener": {"apiListener": {"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
				"rds": {"routeConfigName": "r", "configSource": {"ads": {}}}}}`,
			"there is no HTTP filter",
		},
		"gRPC of something else": {
			`"apiListener": {"apiListener": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster"}}`, "is not an HTTP connection manager",
		},
	}, func(t *testing.T, given string) string {
		return judge(t, &listenerv3.Listener{}, `"name": "l", `+given)
	})
}

func TestG89Routes(t *testing.T) {
	to := func(action string) string {
		return `{"name": "h", "domains": ["a.com"], "routes": [{"match": {"prefix": "/"}, "route": {` + action + `}}]}`
	}
	split := func(weights ...int) string {
		var shares []string
		for _, weight := range weights {
			shares = append(shares, fmt.Sprintf(`{"name": "c", "weight": %d}`, weight))
		}
		return `"weightedClusters": {"clusters": [` + strings.Join(shares, ", ") + `]}`
	}
	matched := func(match string) string {
		return `{"name": "h", "domains": ["a.com"], "routes": [{"match": {` + match + `}, "route": {"cluster": "c"}}]}`
	}
	compare(t, map[string]row{
		"one":                        {to(`"cluster": "c"`), ""},
		"a name twice":               {to(`"cluster": "c"`) + `, {"name": "h", "domains": ["b.com"], "routes": [{"match": {"prefix": "/"}, "redirect": {}}]}`, `virtual_hosts[1]: the name "h" is there twice`},
		"a domain in capitals":       {to(`"cluster": "c"`) + `, {"name": "i", "domains": ["A.com"], "routes": [{"match": {"prefix": "/"}, "redirect": {}}]}`, `the domain "a.com" is empty or there twice`},
		"no domain":                  {`{"name": "h"}`, "has no domain or no route"},
		"shares":                     {to(split(0, 1)), ""},
		"shares of nothing":          {to(split(0, 0)), "weighted_clusters: the weights add up to 0"},
		"shares that are too many":   {to(split(1<<31, 1<<31)), "add up to 4294967296"},
		"an expression":              {matched(`"safeRegex": {"regex": "/a.*"}`), ""},
		"an expression that is none": {matched(`"safeRegex": {"regex": "/a("}`), `the regular expression "/a(" is not RE2`},
		"one of bytes":               {matched(`"safeRegex": {"regex": "/a\\C{2}(\\C|b)"}`), ""},
		"bytes, and none":            {matched(`"safeRegex": {"regex": "/\\C("}`), "is not RE2"},
		"bytes among characters":     {matched(`"safeRegex": {"regex": "/[\\C]"}`), "is not RE2"},
		"one in a header's match":    {matched(`"prefix": "/", "headers": [{"name": "x", "stringMatch": {"safeRegex": {"regex": "(?=a)"}}}]`), `"(?=a)" is not RE2`},
		"a time too long to count":   {to(`"cluster": "c", "timeout": "9300000000s"`), "more than Envoy can count"},
	}, func(t *testing.T, given string) string {
		return judge(t, &routev3.RouteConfiguration{}, `"name": "r", "virtualHosts": [`+given+`]`)
	})
}

func TestG89PartsOfRoutes(t *testing.T) {
	host := &routev3.VirtualHost{}
	if err := protojson.Unmarshal([]byte(`{"name": "h", "domains": ["a.com"], "routes": [{"match": {"prefix": "/"}, "route": {
		"weightedClusters": {"clusters": [{"name": "c", "weight": 0}]}}}]}`), host); err != nil {
		t.Fatal(err)
	}
	if err := check.Part(host); err == nil || !strings.Contains(err.Error(), "add up to 0") {
		t.Errorf("shares of nothing in a virtual host: %v", err)
	}
}

func TestRefusalsNameTheResource(t *testing.T) {
	want := `validating Cluster "c": lb_policy: an ORIGINAL_DST cluster`
	if got := judge(t, &clusterv3.Cluster{}, `"name": "c", "type": "ORIGINAL_DST"`); !strings.HasPrefix(got, want) {
		t.Errorf("refused with %q, want %q", got, want)
	}
	if got := judge(t, &clusterv3.Cluster{}, `"name": "`+strings.Repeat("x", 400)+`"`); !strings.Contains(got, "bytes") {
		t.Errorf("a name of 400 bytes is refused with %q", got)
	}
}
