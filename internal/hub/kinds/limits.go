package kinds

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"isthmus.dev/isthmus/federation"
)

// Limits bounds what one cluster may have; see federation.Limits.
type Limits struct {
	Objects int    `yaml:"objects"`
	Pages   int    `yaml:"pages"`
	Bytes   string `yaml:"bytes"` // a quantity as in Kubernetes, such as 512Mi
}

// Read reads the section; field is its place in the config file.
func (c Limits) Read(field string) (federation.Limits, error) {
	l := federation.Limits{Objects: c.Objects, Pages: c.Pages}
	var wrong []error
	for name, n := range map[string]int{"objects": c.Objects, "pages": c.Pages} {
		if n < 0 {
			wrong = append(wrong, fmt.Errorf("%s.%s: %d is not a limit; write 1 or more, or 0 for the default", field, name, n))
		}
	}
	if c.Bytes == "" {
		return l, errors.Join(wrong...)
	}
	q, err := resource.ParseQuantity(c.Bytes)
	if err != nil || q.Sign() <= 0 {
		wrong = append(wrong, fmt.Errorf("%s.bytes: %q is not a size; write one such as 512Mi", field, c.Bytes))
	}
	l.Bytes = q.Value()
	return l, errors.Join(wrong...)
}

// LimitsOr are the cluster's own limits, else the given ones, else the defaults; what was
// checked with the file is right.
func (c Cluster) LimitsOr(all federation.Limits) federation.Limits {
	own, _ := c.Limits.Read("limits")
	return own.Or(all).WithDefaults()
}
