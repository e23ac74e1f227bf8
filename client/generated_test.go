package client_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/Khan/genqlient/generate"
)

// TestGeneratedCodeIsThatOfTheSchema: the operations fit schema.graphql, and the
// code is what they give.
func TestGeneratedCodeIsThatOfTheSchema(t *testing.T) {
	config, err := generate.ReadAndValidateConfig("genqlient.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files, err := generate.Generate(config)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range files {
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what operations.graphql and schema.graphql give; run go generate ./client", file)
		}
	}
	if len(files) != 1 {
		t.Errorf("%d files are generated", len(files))
	}
}
