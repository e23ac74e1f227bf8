package config

import (
	"fmt"

	"isthmus.dev/isthmus/federation"
)

// Limits of what a commit may hold, in bytes.
const (
	MaxManifest  = 1 << 20   // of one object
	MaxManifests = 128 << 20 // of all objects
	maxNote      = 64 << 10
	maxName      = 1024 // of an object's names
)

// Refusal tells why the commit can never be taken: a *Refused, or nil. Each Log asks it first.
func (c Commit) Refusal() error {
	if len(c.Changes) == 0 {
		return &Refused{Limit: "empty commit", Message: "it changes nothing"}
	}
	if err := c.checkSize(maxNote); err != nil {
		return err
	}
	if err := c.refusedSecrets(); err != nil {
		return err
	}
	size, seen := 0, make(map[federation.ObjectKey]bool, len(c.Changes))
	for _, change := range c.Changes {
		key := change.Key.Everywhere() // a Log has objects for all proxies
		if seen[key] {
			return &Refused{Limit: "duplicate object", Message: fmt.Sprintf("%s is in the commit more than once", change.Key)}
		}
		seen[key] = true
		if change.Object == nil {
			continue
		}
		if change.Object.Key != change.Key {
			return &Refused{Limit: "invalid object", Message: fmt.Sprintf("%s comes with the object %s", change.Key, change.Object.Key)}
		}
		if err := change.Object.tooLarge(); err != nil {
			return err
		}
		size += len(change.Object.Manifest)
	}
	if size > MaxManifests {
		return &Refused{
			Limit:   "commit size",
			Message: fmt.Sprintf("its objects have %d bytes, the limit is %d; apply them in several commits", size, MaxManifests),
		}
	}
	for _, change := range c.Changes { // now that it is known that they can be read
		if change.Object == nil {
			continue
		}
		if err := change.Object.misnamed(); err != nil {
			return err
		}
	}
	return nil
}

// Refusal tells why the object can never be taken: a *Refused, or nil. Leases ask it first.
func (o *Object) Refusal() error {
	if err := o.tooLarge(); err != nil {
		return err
	}
	return o.misnamed()
}

func (o *Object) tooLarge() error {
	if len(o.Manifest) > MaxManifest {
		return &Refused{Limit: "object size", Message: fmt.Sprintf("%.200s has %d bytes, the limit is %d",
			o.Key, len(o.Manifest), MaxManifest)}
	}
	if len(o.APIVersion)+len(o.Key.Everywhere().SortKey()) > maxName {
		return &Refused{Limit: "name length", Message: fmt.Sprintf("%.200s… has names of more than %d bytes", o.Key, maxName)}
	}
	return nil
}

func (o *Object) misnamed() error {
	if err := o.CheckName(); err != nil {
		return &Refused{Limit: "invalid object", Message: fmt.Sprintf("%s: %s", o.Key, err)}
	}
	return nil
}

// refusedSecrets tells why the secrets of a commit can never be taken.
func (c Commit) refusedSecrets() error {
	if len(c.Secrets) > MaxSecrets {
		return &Refused{Limit: "secrets", Message: fmt.Sprintf("it changes %d secrets, the limit is %d; make several commits",
			len(c.Secrets), MaxSecrets)}
	}
	seen, size := map[federation.ObjectKey]bool{}, 0
	for _, s := range c.Secrets {
		size += len(s.Sealed)
		switch {
		case seen[s.Of]:
			return &Refused{Limit: "duplicate secret", Message: fmt.Sprintf("%s has two secrets in the commit", s.Of)}
		case size > MaxSecret:
			return &Refused{
				Limit:   "secret size",
				Message: fmt.Sprintf("the secret of %s is too large: the limit of a commit is %d bytes", s.Of, MaxSecret),
			}
		}
		seen[s.Of] = true
	}
	return nil
}

// checkSize refuses a note of more than so many bytes, and names its largest field.
func (n Note) checkSize(most int) error {
	fields := map[string]string{
		"message": n.Message, "fieldManager": n.Manager, "ticket": n.Ticket,
		"idempotencyKey": n.IdempotencyKey, "": n.Author,
	}
	size, largest := 0, ""
	for name, value := range fields {
		size += len(value)
		if len(value) > len(fields[largest]) {
			largest = name
		}
	}
	if size <= most {
		return nil
	}
	return &Refused{Limit: "note size", Field: largest, Message: fmt.Sprintf(
		"author, message, manager, ticket and idempotency key have more than %d bytes", most)}
}
