package main

import (
	"slices"
	"sync"

	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/registries"
)

// clusterSources are the places where clusters are named, in order of
// precedence: of those that name one ID the first has it.
type clusterSources struct {
	supervisor *registries.Supervisor
	claims     *registries.Claims
	config     *registries.Source // the config file
	folder     *registries.Source // --kubeconfig-dir
	objects    *registries.Source // Cluster objects
	sample     *registries.Source
}

// The ranks of the sources. remoteRank is that of Secrets in attached clusters,
// each a source of its own.
const (
	configRank = iota
	folderRank
	objectRank
	remoteRank
	sampleRank
)

const (
	folderSource = "--kubeconfig-dir"
	configSource = "the config file"
	sampleSource = "the sample"
)

func newClusterSources(s *registries.Supervisor) clusterSources {
	c := registries.NewClaims(s)
	return clusterSources{
		supervisor: s, claims: c,
		config: c.Source(configRank, configSource, "config"), folder: c.Source(folderRank, folderSource, "folder"),
		objects: c.Source(objectRank, attach.ObjectSource, "object"), sample: c.Yielding(sampleRank, sampleSource, ""),
	}
}

// firstLooks closes a channel once everyone who attaches clusters at the start
// has looked.
type firstLooks struct {
	mu      sync.Mutex
	waiting []string
	done    chan struct{}
}

func newFirstLooks(who ...string) *firstLooks {
	return &firstLooks{waiting: who, done: make(chan struct{})}
}

// looked notes that one has; again it does nothing.
func (f *firstLooks) looked(who string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.Index(f.waiting, who)
	if at < 0 {
		return
	}
	if f.waiting = slices.Delete(f.waiting, at, at+1); len(f.waiting) == 0 {
		close(f.done)
	}
}
