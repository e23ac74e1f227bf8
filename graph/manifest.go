package graph

import (
	"context"

	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

// Bounds of manifests in answers, in bytes of JSON: of a page that asks for them, and of
// an operation. Most objects have a few thousand bytes, and some a million.
const (
	maxManifestPage   = 8 << 20
	maxManifestAnswer = 32 << 20
)

// manifestSize is what an object counts for in a page.
func manifestSize(of model.ConfigObject) int { return len(of.Of.Manifest) }

// JSON is the whole object.
func (objectResolver) JSON(ctx context.Context, of *model.ConfigObject) (string, error) {
	if err := spendManifest(ctx, of); err != nil {
		return "", err
	}
	return string(of.Of.Manifest), nil
}

// Yaml is the whole object without managed fields.
func (objectResolver) Yaml(ctx context.Context, of *model.ConfigObject) (string, error) {
	if err := spendManifest(ctx, of); err != nil {
		return "", err
	}
	return model.YAML(of.Of)
}

func spendManifest(ctx context.Context, of *model.ConfigObject) error {
	if seen(ctx).manifests.Add(int64(manifestSize(*of))) > maxManifestAnswer {
		return transport.Errorf(transport.TooComplex,
			"the operation asks for more than %d MiB of manifests; ask for smaller pages, or for yaml or json once", maxManifestAnswer>>20)
	}
	return nil
}
