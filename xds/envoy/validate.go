package envoy

import "google.golang.org/protobuf/proto"

// Validate checks a resource as strictly as Envoy does and more: one bad
// resource makes Envoy drop a whole response, so it must never be sent.
func Validate(m proto.Message) error {
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		return v.ValidateAll()
	}
	return nil
}
