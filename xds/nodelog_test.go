package xds

import (
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/xds/xdstest"
)

// TestU31TheLogNamesWhoseNodeIsRefused: the pod, although the hub could not read its node.
func TestU31TheLogNamesWhoseNodeIsRefused(t *testing.T) {
	log := &sharedLog{}
	h := newHub(t, func(o *Options) {
		o.Access = inspects(true)
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
	})
	n := node("web-1")
	n.Metadata.Fields["LABELS"] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewStringValue(strings.Repeat("x", 1<<17))}})
	c := h.client(xdstest.Options{Node: n})
	c.ask(xdstest.Request{Type: xdstest.CDS})
	if _, err := c.Receive(t.Context()); status.Code(err) != codes.InvalidArgument {
		t.Fatalf("the error is %v", err)
	}
	if !log.has("closing an xDS stream", "metadata LABELS", "node="+n.GetId()) {
		t.Errorf("the log lacks the pod:\n%s", log.String())
	}
}

// TestU71TheLogNamesSettingsWithoutEffect of a proxy that is served.
func TestU71TheLogNamesSettingsWithoutEffect(t *testing.T) {
	log := &sharedLog{}
	h := newHub(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	n := node("web-1")
	n.Metadata.Fields["PROXY_CONFIG"] = structpb.NewListValue(&structpb.ListValue{})
	n.Metadata.Fields["IDLE_TIMEOUT"] = structpb.NewStringValue("1h")
	c := h.client(xdstest.Options{Node: n})
	c.ask(xdstest.Request{Type: xdstest.CDS})
	if _, err := c.Receive(t.Context()); err != nil {
		t.Fatalf("the proxy is not served: %v", err)
	}
	if !log.has("settings of a proxy have no effect", "settings=IDLE_TIMEOUT", "node="+n.GetId()) {
		t.Errorf("the log is:\n%s", log.String())
	}
}
