// Command generate makes the code of graph/generated and graph/model from
// schema.graphql, as the configuration file that it is given says.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen/config"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate CONFIG")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(file string) error {
	if err := os.Chdir(filepath.Dir(file)); err != nil {
		return fmt.Errorf("going to the folder of %s: %w", file, err)
	}
	loaded, err := config.LoadConfig(filepath.Base(file))
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	if err := api.Generate(loaded); err != nil {
		return fmt.Errorf("generating from %s: %w", file, err)
	}
	return nil
}
