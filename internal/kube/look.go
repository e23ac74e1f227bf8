package kube

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ReadFile reads one kubeconfig from a regular file of at most MaxKubeconfig bytes; symlinks are followed.
func ReadFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	defer func() { _ = file.Close() }()
	content, _, problem := readRegular(file, filepath.Base(path))
	if problem != (Finding{}) {
		return nil, fmt.Errorf("reading kubeconfig: %w", &Refusal{Findings: []Finding{problem}})
	}
	return content, nil
}

// list lists the folder with the content of each file. An error means that nothing can be said about any file.
func list(dir string, now time.Time, settle time.Duration) ([]listed, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var look []listed
	for _, entry := range entries {
		if passedOver(entry.Name()) {
			continue
		}
		file := readIn(root, entry.Name(), now, settle)
		if file.problem.Code == codeVanished {
			continue
		}
		look = append(look, file)
	}
	return look, nil
}

const codeVanished Code = "vanished"

// readIn opens a file inside the root. Symlinks are followed as long as they stay inside (the way ConfigMaps are mounted).
func readIn(root *os.Root, name string, now time.Time, settle time.Duration) listed {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return listed{name: name, problem: openProblem(root, name, err)}
	}
	defer func() { _ = file.Close() }()
	content, changed, problem := readRegular(file, name)
	age := now.Sub(changed)
	return listed{name: name, content: content, problem: problem, settled: age >= settle}
}

func openProblem(root *os.Root, name string, err error) Finding {
	info, statErr := root.Lstat(name)
	switch {
	case errors.Is(statErr, fs.ErrNotExist):
		return Finding{Code: codeVanished}
	case statErr == nil && info.Mode()&fs.ModeSymlink != 0 && !errors.Is(err, fs.ErrPermission):
		return Finding{
			Code: CodeNotAFile, Field: name,
			Message: "is a symbolic link to nothing or out of the folder; put the file itself there",
		}
	case statErr == nil && info.Mode()&(fs.ModeSocket|fs.ModeDevice) != 0:
		return notAFile(name)
	}
	return Finding{Code: CodeUnreadable, Field: name, Message: "cannot be opened; check its owner and mode"}
}

func notAFile(name string) Finding {
	return Finding{Code: CodeNotAFile, Field: name, Message: "is not a regular file"}
}

func readRegular(file *os.File, name string) ([]byte, time.Time, Finding) {
	info, err := file.Stat()
	if err != nil {
		return nil, time.Time{}, Finding{Code: CodeUnreadable, Field: name, Message: "cannot be read"}
	}
	if !info.Mode().IsRegular() {
		return nil, time.Time{}, notAFile(name)
	}
	content, err := io.ReadAll(io.LimitReader(file, MaxKubeconfig+1))
	switch {
	case err != nil:
		return nil, time.Time{}, Finding{Code: CodeUnreadable, Field: name, Message: "cannot be read"}
	case len(content) > MaxKubeconfig:
		return nil, info.ModTime(), Finding{Code: CodeTooLarge, Field: name, Message: fmt.Sprintf("has more than %d bytes", MaxKubeconfig)}
	}
	return content, info.ModTime(), Finding{}
}

func codeOf(err error) Code {
	var refusal *Refusal
	if errors.As(err, &refusal) && len(refusal.Findings) > 0 {
		return refusal.Findings[0].Code
	}
	return CodeSyntax
}
