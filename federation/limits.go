package federation

import (
	"cmp"
	"fmt"
)

// Limits bound what one cluster may make the hub keep and read, so that a cluster
// that lies or is broken harms itself only. Zero fields are the defaults.
type Limits struct {
	Objects int   // kept at once
	Pages   int   // of one list
	Bytes   int64 // of memory for what is kept, estimated
}

// Defaults for clusters of 20,000 services and 100,000 pods, twice over.
const (
	defaultLimitObjects = 500_000
	defaultLimitPages   = 2_000
	defaultLimitBytes   = 1 << 30
)

// WithDefaults fills in what is zero.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Objects: cmp.Or(l.Objects, defaultLimitObjects), Pages: cmp.Or(l.Pages, defaultLimitPages), Bytes: cmp.Or(l.Bytes, defaultLimitBytes),
	}
}

// Or takes the fields that are zero from other limits.
func (l Limits) Or(other Limits) Limits {
	return Limits{Objects: cmp.Or(l.Objects, other.Objects), Pages: cmp.Or(l.Pages, other.Pages), Bytes: cmp.Or(l.Bytes, other.Bytes)}
}

// Usage is what of a cluster is kept.
type Usage struct {
	Objects int
	Bytes   int64
}

// Add is the sum.
func (u Usage) Add(o Usage) Usage {
	return Usage{Objects: u.Objects + o.Objects, Bytes: u.Bytes + o.Bytes}
}

// Bytes of a map of labels, and of its texts beside what is in them.
const (
	labelsSize = 48
	labelSize  = 36 // a place of the map
	textSize   = 8  // by which a text is rounded up
)

// TextSize returns the bytes that texts take in memory.
func TextSize(texts ...string) (n int64) {
	for _, t := range texts {
		n += int64(len(t)) + textSize
	}
	return n
}

// LabelsSize returns the bytes that labels take in memory: their map has 8 places, or so
// many that at most seven of eight are taken.
func LabelsSize(labels map[string]string) int64 {
	if len(labels) == 0 {
		return labelsSize
	}
	places := 8
	for len(labels) > 8 && places*7/8 < len(labels) {
		places *= 2
	}
	n := labelsSize + labelSize*int64(places)
	for k, v := range labels {
		n += TextSize(k, v)
	}
	return n
}

// LimitError is the error of a cluster that has more than it may.
type LimitError struct {
	Limit string // the setting that it exceeds
	Most  int64
}

// Error is part of error.
func (e LimitError) Error() string {
	what := fmt.Sprintf("the cluster has more than %d %s", e.Most, e.Limit)
	if e.Limit == "pages" {
		what = fmt.Sprintf("a list of the cluster has more than %d pages", e.Most)
	}
	if e.Limit == "bytes" {
		what = fmt.Sprintf("what is kept of the cluster takes more than %d bytes", e.Most)
	}
	return fmt.Sprintf("%s, its limit: what was known of it stays; remove objects, or raise %s in clusters[].limits or clusterLimits of the config file, or in spec.limits of its Cluster object", what, e.Limit)
}

// Check returns a LimitError if the usage exceeds the limits.
func (l Limits) Check(u Usage) error {
	switch {
	case u.Objects > l.Objects:
		return LimitError{Limit: "objects", Most: int64(l.Objects)}
	case u.Bytes > l.Bytes:
		return LimitError{Limit: "bytes", Most: l.Bytes}
	}
	return nil
}
