// Package istiodebug answers what Istio's tools ask a control plane about itself: which
// proxies are connected and what they accepted, the attached clusters, the services and
// their endpoints. Answers are functions of the fleet and of the snapshot; no stream is asked.
package istiodebug

import (
	"context"
	"encoding/json"
	"fmt"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
)

const (
	// maxBytes is the largest answer. Clients of gRPC that set no limit accept 4 MiB;
	// istioctl accepts this.
	maxBytes = 64 << 20
	// maxAnswers is how many answers are made at the same time.
	maxAnswers = 2
)

// Build is the version of the hub.
type Build struct{ Version, Revision, Go string }

// Snapshots gives the newest snapshot; an Aggregate does.
type Snapshots interface {
	Latest() *federation.Snapshot
}

// Options are what a Debug works with. All are required.
type Options struct {
	Snapshots Snapshots
	Fleet     *fleet.Fleet
	Hub       string // the name of this hub among several
	Build     Build
	// Dump is what a stream was sent last, without what is sensitive; xds.ConfigDump does.
	Dump func(fleet.Key) (*adminv3.ConfigDump, error)
}

// Debug answers. It may be used by several goroutines.
type Debug struct {
	o     Options
	slots chan struct{}
}

// New makes a Debug.
func New(o Options) *Debug { return &Debug{o: o, slots: make(chan struct{}, maxAnswers)} }

// Turn waits until few others are answered. The caller calls done after its answer was made.
func (d *Debug) Turn(ctx context.Context) (done func(), err error) {
	select {
	case d.slots <- struct{}{}:
		return func() { <-d.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TooLargeError is the error of an answer that would be larger than the limit.
type TooLargeError struct{ What string }

func (e TooLargeError) Error() string {
	return fmt.Sprintf("%s has more than %d MiB: ask for a part of it by GraphQL, or with isthmus get", e.What, maxBytes>>20)
}

// buildStatus is what Istio's tools expect of a program that was built from a commit.
const buildStatus = "Clean"

// buildInfo is a version as Istio's tools read it.
type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"golang_version"`
	Status   string `json:"status"`
	Tag      string `json:"tag"`
}

func (d *Debug) build() buildInfo {
	b := d.o.Build
	return buildInfo{Version: b.Version, Revision: b.Revision, Go: b.Go, Status: buildStatus, Tag: b.Version}
}

// Identifier says which control plane answers, as Istio's tools read it from responses.
func (d *Debug) Identifier() string {
	text, err := json.Marshal(struct {
		Component, ID string
		Info          buildInfo
	}{"isthmus", d.o.Hub, d.build()})
	if err != nil {
		return "" // three texts
	}
	return string(text)
}
