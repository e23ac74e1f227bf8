// Package crds has the CustomResourceDefinitions of isthmus's own kinds. The
// hub validates by them, and a cluster whose objects are to be read gets them
// with kubectl apply -f deploy/crds.
package crds

import "embed"

// Files are the definitions, one YAML document a file.
//
//go:embed *.yaml
var Files embed.FS
