package kube

import (
	"errors"
	"strings"
)

// ErrClusterID says the rule of cluster IDs (B-K15).
var ErrClusterID = errors.New("a cluster ID has 1 to 63 characters of a-z, 0-9 and '-', and starts and ends with a letter or digit")

const (
	longestClusterID = 63 // bytes
	clusterIDChars   = "-0123456789abcdefghijklmnopqrstuvwxyz"
)

// ValidateClusterID returns ErrClusterID for an ID that breaks the rule.
func ValidateClusterID(id string) error {
	allowed := strings.Trim(id, clusterIDChars) == ""
	if !allowed || id == "" || len(id) > longestClusterID || id[0] == '-' || id[len(id)-1] == '-' {
		return ErrClusterID
	}
	return nil
}
