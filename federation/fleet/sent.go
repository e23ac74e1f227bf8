package fleet

// SentResource is one resource of a proxy: what it was sent last, and what it
// accepted last.
type SentResource struct {
	Name        string
	Sent, Acked Content
}

// Content is what a resource is at a version; the zero one is none.
type Content struct {
	Version string
	Size    int                    // bytes on the wire
	JSON    func() ([]byte, error) // without what is secret; nil: not shown
}
