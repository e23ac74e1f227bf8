// Package validation checks what a schema cannot express: which fields of
// Istio's kinds exclude or need each other, and which values are valid. Istio's
// admission webhook refuses the same objects. The rules follow the reference of
// the API. They are pure functions over values; what depends on other objects is
// not checked here.
package validation

import "isthmus.dev/isthmus/federation/config/schema"

// Problem is what is wrong with an object. Every code but NoEffect is a reason to
// refuse the object.
type Problem = schema.Problem

// NoEffect is the code of what is valid and does nothing.
const NoEffect schema.Code = "NO_EFFECT"
