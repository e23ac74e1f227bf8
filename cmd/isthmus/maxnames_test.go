package main

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/xds/xdstest"
)

// TestR62NamesPerType: the setting of the file bounds the names of a stream.
func TestR62NamesPerType(t *testing.T) {
	p := startSecureProgram(t, "true", "xds: {maxNamesPerType: 3}\n")
	must(t, p.applyHost("before"))
	stream := p.open(t, p.connection(t, "127.0.0.1"))
	p.receives(t, stream, "outbound|80||before.example")
	must(t, stream.Send(xdstest.Request{Type: xdstest.EDS, Names: []string{"outbound|80||before.example", "b", "c"}}))
	must(t, p.applyHost("after"))
	p.receives(t, stream, "outbound|80||after.example")
	_ = stream.Send(xdstest.Request{Type: xdstest.EDS, Names: []string{"d"}}) // a stream that is over says so below
	if err := p.endOf(t, stream); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "xds.maxNamesPerType") {
		t.Errorf("a fourth name ends the stream with %v", err)
	}
}
