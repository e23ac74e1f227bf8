package text

import (
	"errors"
	"io/fs"
	"strings"
)

// WithoutPath is the error of a file without its path, which the caller names.
func WithoutPath(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// OfProtoJSON is what protojson says, without the position in a text that the author has not seen,
// and without the space that it varies from build to build.
func OfProtoJSON(err error) string {
	said := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	if _, after, found := strings.Cut(said, "): "); found {
		return after
	}
	return strings.TrimPrefix(said, "proto: ")
}
