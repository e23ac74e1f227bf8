package istiodebug

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation/fleet"
)

// ErrNoProxy is the error of a question about a proxy that this hub does not serve.
var ErrNoProxy = errors.New("no such proxy is connected to this hub")

// Name is what Istio's tools call a node: the third part of its ID, NAME.NAMESPACE. An ID
// of another form is its own name.
func Name(nodeID string) string {
	parts := strings.Split(nodeID, "~")
	if len(parts) != 4 {
		return nodeID
	}
	return parts[2]
}

// ConfigDump is what the proxy was sent last, as its own config dump shows what it has. The
// proxy is given by its name or by its whole ID.
func (d *Debug) ConfigDump(proxy string) (*adminv3.ConfigDump, error) {
	stream, err := d.streamOf(proxy)
	if err != nil {
		return nil, err
	}
	dump, err := d.o.Dump(stream)
	if err != nil {
		return nil, err
	}
	if proto.Size(dump) > maxBytes {
		return nil, TooLargeError{"the configuration of " + proxy}
	}
	return dump, nil
}

// streamOf finds the newest stream of a proxy. Proxies of several clusters may have one name.
func (d *Debug) streamOf(proxy string) (fleet.Key, error) {
	if proxy == "" {
		return fleet.Key{}, fmt.Errorf("%w: name it, as in config_dump?proxyID=NAME.NAMESPACE", ErrNoProxy)
	}
	var found *fleet.Proxy
	for p := range d.o.Fleet.Latest().Proxies() {
		if p.NodeID != proxy && Name(p.NodeID) != proxy {
			continue
		}
		if found != nil && found.Cluster != p.Cluster {
			return fleet.Key{}, fmt.Errorf("%w: %q is the name of proxies of the clusters %s and %s; name it by its whole ID, such as %s",
				ErrNoProxy, proxy, found.Cluster, p.Cluster, p.NodeID)
		}
		if found == nil || found.ConnectedAt.Before(p.ConnectedAt) {
			found = p
		}
	}
	if found == nil {
		return fleet.Key{}, fmt.Errorf("%w: %q", ErrNoProxy, proxy)
	}
	return found.Key(), nil
}

// configuration adds the parts of the proxy's config dump.
func (d *Debug) configuration(proxy string, add adder) error {
	dump, err := d.ConfigDump(proxy)
	if err != nil {
		return err
	}
	parts := make([]json.RawMessage, 0, len(dump.GetConfigs()))
	for _, one := range dump.GetConfigs() {
		text, err := protojson.Marshal(one)
		if err != nil {
			return fmt.Errorf("the configuration of %s cannot be shown: %w", proxy, err)
		}
		parts = append(parts, text)
	}
	return add("configs", parts)
}
