package cmdutil

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// MaxInput is how many bytes the manifests of one request, or a document of GraphQL, may
// have; the hub takes a little more.
const MaxInput = 16 << 20

// Stdin is how problems call standard input.
const Stdin = "-"

// ReadRegular reads a regular file of at most the limit and refuses all else,
// before it opens what might block.
func ReadRegular(name string, stat func(string) (fs.FileInfo, error), open func(string) (*os.File, error)) ([]byte, error) {
	info, err := stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := ReadLimited(f)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data, nil
}

// ReadLimited reads at most MaxInput bytes, and refuses more.
func ReadLimited(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxInput+1))
	if err == nil && len(data) > MaxInput {
		err = errors.New("it has more than 16 MiB; split it")
	}
	return data, err
}
