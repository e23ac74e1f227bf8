package model

import "isthmus.dev/isthmus/federation/fleet"

// ProxyConfig is what a stream was sent of one type.
type ProxyConfig struct {
	TypeURL string
	Of      fleet.Key
}

// ProxyResource shows one resource of a proxy.
type ProxyResource struct{ Of fleet.SentResource }

// Name is that of the resource, which is its key, too.
func (r ProxyResource) Name() string { return r.Of.Name }

// VersionSent is that of what was sent last.
func (r ProxyResource) VersionSent() *string { return nonEmpty(r.Of.Sent.Version) }

// VersionAcked is that of what was accepted last.
func (r ProxyResource) VersionAcked() *string { return nonEmpty(r.Of.Acked.Version) }
