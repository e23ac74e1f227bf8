package consul

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"

	"isthmus.dev/isthmus/federation"
)

// budget bounds what a Consul makes the registry keep and read at once (R06), and
// tells how much of it is used, also while an answer comes that may never end.
type budget struct {
	limits  federation.Limits
	used    func(federation.Usage)
	reading atomic.Int64 // memory for answers that are being read

	mu      sync.Mutex
	kept    federation.Usage // in the model
	syncing federation.Usage // what takes the place of it, as far as it was read
}

// keep notes what the model keeps.
func (b *budget) keep(u federation.Usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = u
	b.show()
}

// sync notes what a new reading of everything has come to.
func (b *budget) sync(u federation.Usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.syncing = u
	b.show()
}

// progress tells what is used now.
func (b *budget) progress() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.show()
}

// show needs the lock, so that the last value sent is the newest.
func (b *budget) show() {
	b.used(federation.Usage{
		Objects: max(b.kept.Objects, b.syncing.Objects), Bytes: max(b.kept.Bytes, b.syncing.Bytes) + b.reading.Load(),
	})
}

// What an answer takes in memory while it is read, roughly: its bytes, which are copied
// as more of them come, and what they are decoded to. An empty object of three bytes may
// become a struct of hundreds.
const (
	perByte   = 2
	perValue  = 32  // each comma
	perObject = 160 // each opening brace
)

// showEvery is how many bytes of one answer come between two looks at the usage.
const showEvery = 1 << 20

// memoryFor is what this part of an answer takes. Text with commas and braces counts as
// more than it takes, and never as less.
func memoryFor(part []byte) int64 {
	return int64(perByte*len(part) + perValue*bytes.Count(part, []byte{','}) + perObject*bytes.Count(part, []byte{'{'}))
}

// body counts the answer while it is read; done ends that.
func (b *budget) body(of io.Reader) (counted *countedBody, done func()) {
	c := &countedBody{body: of, budget: b}
	return c, func() {
		b.reading.Add(-c.takes)
		if c.shown > 0 {
			b.progress()
		}
	}
}

type countedBody struct {
	body   io.Reader
	budget *budget
	read   int64
	takes  int64 // memory
	shown  int64

	progress func()
	passed   int64 // bytes read at the last progress
}

// progressSize is how many bytes of an answer are progress. A Consul that sends its answer
// byte by byte makes none.
const progressSize = 64 << 10

func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.body.Read(p)
	takes := memoryFor(p[:n])
	c.read, c.takes = c.read+int64(n), c.takes+takes
	if c.budget.reading.Add(takes) > c.budget.limits.Bytes {
		return 0, federation.LimitError{Limit: "bytes", Most: c.budget.limits.Bytes}
	}
	if c.read-c.passed >= progressSize {
		c.passed = c.read
		c.progress()
	}
	if c.read-c.shown >= showEvery {
		c.shown = c.read
		c.budget.progress()
	}
	return n, err
}

// What the hub keeps of a datacenter, in the registry and in the snapshot, in bytes beside
// texts. TestR06TheCountIsWhatTheHubKeeps measures it.
const (
	offerSize    = 512 // a service, whatever becomes of it
	shardSize    = 2048
	aliasSize    = 240
	endpointSize = 736
	portSize     = 24 // of an endpoint
	workloadSize = 672
	problemSize  = 480
)

// usage is what keeping the translation takes: its instances, and about how many bytes.
func (o *translation) usage() federation.Usage {
	if o == nil {
		return federation.Usage{}
	}
	u := federation.Usage{Objects: 1, Bytes: offerSize}
	for _, p := range o.problems {
		u.Bytes += problemSize + int64(len(p.Object)+len(p.Field)+len(p.Message))
	}
	if o.shard == nil {
		return u
	}
	u.Objects += len(o.shard.Endpoints)
	u.Bytes += bytesOf(o.shard) + workloadSize*int64(len(o.workloads))
	for i := range o.shard.Endpoints {
		e := &o.shard.Endpoints[i]
		u.Bytes += int64(len(e.UID)+2*len(e.Workload)) + federation.LabelsSize(e.Labels)
	}
	for _, s := range o.tagged {
		u.Objects++
		u.Bytes += bytesOf(s)
	}
	return u
}

// bytesOf is what the shard takes but for what the shards of the service's tags share with it.
func bytesOf(s *federation.Shard) int64 {
	n := shardSize + aliasSize*int64(len(s.Aliases))
	for i := range s.Endpoints {
		n += endpointSize + portSize*int64(len(s.Endpoints[i].Ports))
	}
	return n
}

func minus(u federation.Usage) federation.Usage {
	return federation.Usage{Objects: -u.Objects, Bytes: -u.Bytes}
}

// fits checks that the translations may be kept beside, or instead of, the present ones.
func (s *syncer) fits(translations map[string]*translation) error {
	all := s.model.used
	for name, o := range translations {
		all = all.Add(minus(s.model.translations[name].usage())).Add(o.usage())
	}
	return s.r.client.budget.limits.Check(all)
}
