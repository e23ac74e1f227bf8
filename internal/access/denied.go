package access

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"isthmus.dev/isthmus/internal/filewatch"
)

// denyEvery is the time between two looks at the deny list.
const denyEvery = 2 * time.Second

// maxDenied bounds the lines of a deny list.
const maxDenied = 100_000

// Denied is the list of workloads that get nothing from the hub whatever they prove:
// a file with a SPIFFE ID in each line, or the beginning of IDs with * at its end. A
// certificate cannot be taken back; what it opens here can. It may be used by several
// goroutines.
type Denied struct {
	path   string
	every  time.Duration // between two looks
	logger *slog.Logger
	list   atomic.Pointer[denyList]
}

type denyList struct {
	text     string
	exact    map[string]bool
	prefixes []string
}

// OpenDenied reads the list; without a path it is empty.
func OpenDenied(path string, logger *slog.Logger) (*Denied, error) {
	d := &Denied{path: path, every: denyEvery, logger: logger}
	d.list.Store(&denyList{})
	if path == "" {
		return d, nil
	}
	list, err := readDenied(path)
	if err != nil {
		return nil, err
	}
	d.list.Store(list)
	return d, nil
}

func readDenied(path string) (*denyList, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the deny list: %w", err)
	}
	list := &denyList{text: string(text), exact: map[string]bool{}}
	for i, line := range strings.Split(list.text, "\n") {
		line = strings.TrimSpace(line)
		prefix, isPrefix := strings.CutSuffix(line, "*")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case i >= maxDenied:
			return nil, fmt.Errorf("reading the deny list: %s has more than %d lines", path, maxDenied)
		case !strings.HasPrefix(line, "spiffe://") || strings.ContainsAny(prefix, "* \t"):
			return nil,
				fmt.Errorf("reading the deny list: %s:%d: %q is not a SPIFFE ID; use spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT, or the beginning of IDs and *", path, i+1, line)
		case isPrefix:
			list.prefixes = append(list.prefixes, prefix)
		default:
			list.exact[line] = true
		}
	}
	return list, nil
}

// check tells why the workload gets nothing; nil: it is not on the list.
func (d *Denied) check(workload string) error {
	if d == nil {
		return nil
	}
	list := d.list.Load()
	denied := list.exact[workload]
	for _, prefix := range list.prefixes {
		denied = denied || strings.HasPrefix(workload, prefix)
	}
	if denied {
		return refusal{fmt.Sprintf("%s is on the deny list of the hub (identity.denyFile)", workload)}
	}
	return nil
}

// Run follows the file until the context ends. A list that cannot be read changes
// nothing.
func (d *Denied) Run(ctx context.Context) error {
	if d.path == "" {
		return nil
	}
	filewatch.Poll(ctx, d.every, d.reload, filewatch.Logged(d.logger,
		"the deny list cannot be read; the previous one stays in use", "the deny list can be read again"))
	return nil
}

func (d *Denied) reload() error {
	list, err := readDenied(d.path)
	if err != nil {
		return err
	}
	if list.text != d.list.Load().text {
		d.logger.Info("deny list changed", slog.Int("count", len(list.exact)+len(list.prefixes)))
		d.list.Store(list)
	}
	return nil
}
