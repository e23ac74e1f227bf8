package fleet

import "isthmus.dev/isthmus/federation"

// SentResource is one resource of a proxy: what it was sent last, and what it
// accepted last.
type SentResource struct {
	Name        string
	Sent, Acked Content
	// Causes returns the configuration objects that it was built from, sorted; nil: none.
	Causes func() []federation.ObjectKey
}

// Content is what a resource is at a version; the zero one is none.
type Content struct {
	Version string
	Size    int                    // bytes on the wire
	JSON    func() ([]byte, error) // without what is secret; nil: not shown
}
