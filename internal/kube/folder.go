package kube

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"isthmus.dev/isthmus/internal/filewatch"
)

// FileKind says what happened to the file of a cluster.
type FileKind string

// Ready carries new content. Gone means that the file was removed. Problem means that the file cannot be used now: clusters
// attached by earlier content stay.
const (
	FileReady   FileKind = "ready"
	FileGone    FileKind = "gone"
	FileProblem FileKind = "problem"
)

// FileEvent is one change of the watched folder. ID is the file name without its suffix; an empty ID is the folder itself.
type FileEvent struct {
	Kind    FileKind
	ID      string
	Files   []string // file names; two for a Problem of CodeTwoFiles
	Content []byte   // of Ready; holds secrets
	Problem Finding  // of Problem; the zero value for others
}

// listed is one file as a look at the folder found it.
type listed struct {
	name    string
	content []byte
	problem Finding // set: the content could not be read
	settled bool    // nothing wrote to it lately
}

// folder is what is known of a watched folder. Its step is pure but for the receiver.
type folder struct {
	check func(content []byte) error // nil: any content is good
	looks filewatch.Looks
	told  map[string]notification // by ID: what the handler knows
}

type notification struct {
	sum      [sha256.Size]byte
	attached bool // the handler holds content of this ID
	problem  Finding
	files    []string
}

func newFolder(check func([]byte) error) *folder {
	return &folder{check: check, told: map[string]notification{}}
}

// step compares a complete look with what is known. Content counts when it is settled or was the same in the look
// before; a file is gone when two looks in a row lack it. again means that a further look soon will tell more.
func (f *folder) step(look []listed) (events []FileEvent, again bool) {
	present := map[string][]listed{}
	pending := map[string]bool{}
	for _, file := range look {
		id := fileID(file.name)
		present[id] = append(present[id], file)
		same := f.looks.Saw(file.name, sumOf(file))
		if !file.settled && !same {
			pending[id] = true
		}
	}
	missing, _ := f.looks.End()
	for _, name := range missing {
		pending[fileID(name)] = true
	}
	for _, id := range f.ids(present) {
		if pending[id] {
			again = true
			continue
		}
		if event, ok := f.eventFor(id, present[id]); ok {
			events = append(events, event)
		}
	}
	return events, again
}

func (f *folder) ids(present map[string][]listed) []string {
	all := map[string]bool{}
	for id := range present {
		all[id] = true
	}
	for id := range f.told {
		all[id] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// eventFor returns the event for one ID, if the handler does not know it yet.
func (f *folder) eventFor(id string, files []listed) (FileEvent, bool) {
	known, told := f.told[id]
	if len(files) == 0 {
		delete(f.told, id)
		return FileEvent{Kind: FileGone, ID: id, Files: known.files}, told
	}
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, file.name)
	}
	slices.Sort(names)
	sum := sumOf(files[0])
	same := known.attached && known.sum == sum && known.problem == (Finding{})
	if same && len(names) == 1 {
		return FileEvent{}, false
	}
	problem := f.problem(id, names, files[0])
	if problem != (Finding{}) {
		f.told[id] = notification{sum: known.sum, attached: known.attached, problem: problem, files: names}
		return FileEvent{Kind: FileProblem, ID: id, Files: names, Problem: problem}, known.problem != problem
	}
	f.told[id] = notification{sum: sum, attached: true, files: names}
	return FileEvent{Kind: FileReady, ID: id, Files: names, Content: files[0].content}, true
}

func (f *folder) problem(id string, names []string, file listed) Finding {
	if err := ValidateClusterID(id); err != nil {
		return Finding{
			Code: CodeClusterID, Field: names[0],
			Message: "rename the file: its name without suffix is the cluster's ID; " + err.Error(),
		}
	}
	if len(names) > 1 {
		return Finding{Code: CodeTwoFiles, Field: strings.Join(names, ", "), Message: "these files name the same cluster; keep one"}
	}
	if file.problem != (Finding{}) {
		return file.problem
	}
	if f.check == nil {
		return Finding{}
	}
	if err := f.check(file.content); err != nil {
		return Finding{Code: codeOf(err), Field: names[0], Message: withoutCode(err)}
	}
	return Finding{}
}

// withoutCode is the text of an error without the code of its only finding, which
// the finding of the file repeats.
func withoutCode(err error) string {
	text := err.Error()
	var refusal *Refusal
	if errors.As(err, &refusal) && len(refusal.Findings) == 1 {
		return strings.TrimSuffix(text, fmt.Sprintf(" (%s)", refusal.Findings[0].Code))
	}
	return text
}

func sumOf(file listed) [sha256.Size]byte {
	return sha256.Sum256(append([]byte(string(file.problem.Code)+"\x00"), file.content...))
}

// fileID is the file name without its last suffix. It is text, whatever the name: logs, metrics
// and answers show it.
func fileID(name string) string {
	return strings.ToValidUTF8(strings.TrimSuffix(name, filepath.Ext(name)), "\uFFFD")
}

// passedOver tells which names are not kubeconfigs: hidden files and what editors leave behind.
func passedOver(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") {
		return true
	}
	switch filepath.Ext(name) {
	case ".tmp", ".swp", ".bak", ".orig":
		return true
	}
	return false
}
