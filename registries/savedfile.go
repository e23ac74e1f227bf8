package registries

import (
	"fmt"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/recordfile"
)

// A file has one record per service and workload.
const (
	serviceBucket  = "services"
	workloadBucket = "workloads"
)

// savedFormat is the version of the files; a higher one is refused.
const savedFormat = 2

// savedHeader describes a file.
type savedHeader struct {
	recordfile.Stamp
	Cluster  federation.ClusterID `json:"cluster"`
	Provider federation.Provider  `json:"provider"`
	UID      string               `json:"uid,omitempty"`
	Network  federation.NetworkID `json:"network,omitempty"`
	Owner    string               `json:"owner,omitempty"` // see Cluster.Owner
	Saved    time.Time            `json:"saved"`
}

func savedFile(path string) recordfile.File {
	return recordfile.File{
		Path: path, Header: "lastKnownGood", Buckets: []string{serviceBucket, workloadBucket}, Format: savedFormat,
		Title: "a last known good state",
	}
}

// readSaved refuses what was not written, whole, for this very shard.
func readSaved(path string, shard federation.ShardKey) (*saved, error) {
	s := &saved{services: map[federation.ServiceKey]*federation.Shard{}, workloads: map[federation.WorkloadKey]*federation.Workload{}}
	right := func() error {
		if s.Cluster != shard.Cluster || s.Provider != shard.Provider {
			return fmt.Errorf("it is the state of %s/%s", s.Cluster, s.Provider)
		}
		return nil
	}
	if err := savedFile(path).Read(&s.savedHeader, right, s.add); err != nil {
		return nil, err
	}
	return s, nil
}

// ownerOf reads the owner of a shard's file; "" where there is none to be read.
func (d *savedStates) ownerOf(shard federation.ShardKey) string {
	owner := ""
	if err := d.locked(shard, func(path string) error { owner = ownerIn(path); return nil }); err != nil {
		return ""
	}
	return owner
}

func ownerIn(path string) string {
	var h savedHeader
	if savedFile(path).ReadHeader(&h) != nil {
		return ""
	}
	return h.Owner
}
