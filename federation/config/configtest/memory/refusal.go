package memory

import (
	"fmt"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// The limits are those of the store in etcd.
const (
	maxObject = 1 << 20
	maxNote   = 64 << 10
)

// refusal tells why a commit can never be taken.
func refusal(c config.Commit) error {
	if len(c.Changes) == 0 {
		return &config.Refused{Limit: "empty commit", Message: "it changes nothing"}
	}
	if err := c.CheckSize(maxNote); err != nil {
		return err
	}
	if err := c.RefusedSecrets(); err != nil {
		return err
	}
	seen := map[federation.ObjectKey]bool{}
	for _, change := range c.Changes {
		if seen[change.Key] {
			return &config.Refused{Limit: "duplicate object", Message: fmt.Sprintf("%s is in the commit more than once", change.Key)}
		}
		seen[change.Key] = true
		if change.Object == nil {
			continue
		}
		if change.Object.Key != change.Key {
			return &config.Refused{Limit: "invalid object", Message: fmt.Sprintf("%s comes with the object %s", change.Key, change.Object.Key)}
		}
		if err := refusalOf(change.Object); err != nil {
			return err
		}
	}
	return nil
}

func refusalOf(o *config.Object) error {
	if len(o.Manifest) > maxObject {
		return &config.Refused{Limit: "object size", Message: fmt.Sprintf("%s has %d bytes, the limit is %d", o.Key, len(o.Manifest), maxObject)}
	}
	if err := o.CheckName(); err != nil {
		return &config.Refused{Limit: "invalid object", Message: fmt.Sprintf("%s: %s", o.Key, err)}
	}
	return nil
}
