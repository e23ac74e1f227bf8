package kube

import (
	"errors"
	"regexp"
)

// ErrClusterID says the rule of cluster IDs (B-K15).
var ErrClusterID = errors.New("a cluster ID has 1 to 63 characters of a-z, 0-9 and '-', and starts and ends with a letter or digit")

var clusterIDPattern = regexp.MustCompile(`\A[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\z`)

// ValidateClusterID returns ErrClusterID for an ID that breaks the rule.
func ValidateClusterID(id string) error {
	if !clusterIDPattern.MatchString(id) {
		return ErrClusterID
	}
	return nil
}
