package validation_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write envoytypes.txt")

// otherTypes are in no module that the hub needs: Envoy's contrib extensions, in
// go-control-plane/contrib, and those of Istio's own proxy.
var otherTypes = strings.Fields(`
envoy.extensions.compression.qatzip.compressor.v3alpha.Qatzip
envoy.extensions.compression.qatzstd.compressor.v3alpha.Qatzstd
envoy.extensions.config.v3alpha.KeyValueStoreXdsDelegateConfig
envoy.extensions.filters.http.checksum.v3alpha.ChecksumConfig
envoy.extensions.filters.http.dynamo.v3.Dynamo
envoy.extensions.filters.http.golang.v3alpha.Config
envoy.extensions.filters.http.golang.v3alpha.ConfigsPerRoute
envoy.extensions.filters.http.golang.v3alpha.RouterPlugin
envoy.extensions.filters.http.language.v3alpha.Language
envoy.extensions.filters.http.squash.v3.Squash
envoy.extensions.filters.http.sxg.v3alpha.SXG
envoy.extensions.filters.network.client_ssl_auth.v3.ClientSSLAuth
envoy.extensions.filters.network.generic_proxy.codecs.kafka.v3.KafkaCodecConfig
envoy.extensions.filters.network.golang.v3alpha.Config
envoy.extensions.filters.network.kafka_broker.v3.IdBasedBrokerRewriteRule
envoy.extensions.filters.network.kafka_broker.v3.IdBasedBrokerRewriteSpec
envoy.extensions.filters.network.kafka_broker.v3.KafkaBroker
envoy.extensions.filters.network.kafka_mesh.v3alpha.ForwardingRule
envoy.extensions.filters.network.kafka_mesh.v3alpha.KafkaClusterDefinition
envoy.extensions.filters.network.kafka_mesh.v3alpha.KafkaMesh
envoy.extensions.filters.network.mysql_proxy.v3.MySQLProxy
envoy.extensions.filters.network.postgres_proxy.v3alpha.PostgresProxy
envoy.extensions.filters.network.rocketmq_proxy.v3.RocketmqProxy
envoy.extensions.filters.network.rocketmq_proxy.v3.Route
envoy.extensions.filters.network.rocketmq_proxy.v3.RouteAction
envoy.extensions.filters.network.rocketmq_proxy.v3.RouteConfiguration
envoy.extensions.filters.network.rocketmq_proxy.v3.RouteMatch
envoy.extensions.filters.network.sip_proxy.router.v3alpha.Router
envoy.extensions.filters.network.sip_proxy.tra.v3alpha.CreateRequest
envoy.extensions.filters.network.sip_proxy.tra.v3alpha.CreateResponse
envoy.extensions.filters.network.sip_proxy.tra.v3alpha.DeleteRequest
envoy.extensions.filters.network.sip_proxy.tra.v3alpha.DeleteResponse
envoy.extensions.filters.network.sip_proxy.tra.v3alpha.RetrieveRequest
envoy.extensions.filters.network.sip_proxy.tra.v3alpha.RetrieveResponse
envoy.extensions.filters.network.sip_proxy.tra.v3alpha.SubscribeRequest
envoy.extensions.filters.network.sip_proxy.tra.v3alpha.SubscribeResponse
envoy.extensions.filters.network.sip_proxy.tra.v3alpha.TraServiceConfig
envoy.extensions.filters.network.sip_proxy.tra.v3alpha.TraServiceRequest
envoy.extensions.filters.network.sip_proxy.tra.v3alpha.TraServiceResponse
envoy.extensions.filters.network.sip_proxy.tra.v3alpha.UpdateRequest
envoy.extensions.filters.network.sip_proxy.tra.v3alpha.UpdateResponse
envoy.extensions.filters.network.sip_proxy.v3alpha.Cache
envoy.extensions.filters.network.sip_proxy.v3alpha.CustomizedAffinity
envoy.extensions.filters.network.sip_proxy.v3alpha.CustomizedAffinityEntry
envoy.extensions.filters.network.sip_proxy.v3alpha.LocalService
envoy.extensions.filters.network.sip_proxy.v3alpha.Route
envoy.extensions.filters.network.sip_proxy.v3alpha.RouteAction
envoy.extensions.filters.network.sip_proxy.v3alpha.RouteConfiguration
envoy.extensions.filters.network.sip_proxy.v3alpha.RouteMatch
envoy.extensions.filters.network.sip_proxy.v3alpha.SipFilter
envoy.extensions.filters.network.sip_proxy.v3alpha.SipProtocolOptions
envoy.extensions.filters.network.sip_proxy.v3alpha.SipProxy
envoy.extensions.matching.input_matchers.hyperscan.v3alpha.Hyperscan
envoy.extensions.network.connection_balance.dlb.v3alpha.Dlb
envoy.extensions.private_key_providers.cryptomb.v3alpha.CryptoMbPrivateKeyMethodConfig
envoy.extensions.private_key_providers.qat.v3alpha.QatPrivateKeyMethodConfig
envoy.extensions.regex_engines.hyperscan.v3alpha.Hyperscan
envoy.extensions.router.cluster_specifier.golang.v3alpha.Config
envoy.extensions.tap_sinks.udp_sink.v3alpha.UdpSink
envoy.extensions.upstreams.http.tcp.golang.v3alpha.Config
envoy.extensions.vcl.v3alpha.VclSocketInterface
envoy.tcp.metadataexchange.config.MetadataExchange
io.istio.http.peer_metadata.Config
istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig
stats.PluginConfig
`)

var (
	protoFile    = regexp.MustCompile(`(?m)^// source: (.*)/[^/]*\.proto$`)
	protoMessage = regexp.MustCompile(`(?m)^func \(x \*([A-Za-z0-9]+)\) ProtoReflect\(\)`)
)

// The list has the types of the Envoy API that the hub is built with.
func TestR27TheTypesOfEnvoyAreListed(t *testing.T) {
	names := slices.Clone(otherTypes)
	for _, module := range []string{"github.com/envoyproxy/go-control-plane/envoy", "github.com/cncf/xds/go"} {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		if err != nil {
			t.Fatal(err)
		}
		root := strings.TrimSpace(string(out))
		err = filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".pb.go") {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			names = append(names, typesOf(string(content))...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	want := strings.Join(slices.Compact(names), "\n") + "\n"
	if *update {
		if err := os.WriteFile("envoytypes.txt", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile("envoytypes.txt"); err != nil || string(got) != want {
		t.Errorf("envoytypes.txt is not what the modules have: run this test with -update (%v)", err)
	}
}

// typesOf are the messages that a generated file has, but for those of version 2 and of services.
func typesOf(content string) []string {
	file := protoFile.FindStringSubmatch(content)
	if file == nil || strings.Contains(file[1], "/v2") || strings.Contains(file[1], "/service/") || strings.Contains(file[1], "/admin/") {
		return nil
	}
	var names []string
	for _, m := range protoMessage.FindAllStringSubmatch(content, -1) {
		names = append(names, strings.ReplaceAll(file[1], "/", ".")+"."+m[1])
	}
	return names
}
