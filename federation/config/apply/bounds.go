package apply

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"isthmus.dev/isthmus/federation/config/manifest"
)

// The bounds of what a request may say and of what is answered.
const (
	maxManager  = 128  // bytes
	maxErrors   = 1000 // the last one says how many more there are
	maxFindings = 1000
)

// check says what is wrong with a request beside its manifests.
func (r Request) check() []Error {
	var errs []Error
	refuse := func(field, format string, args ...any) {
		errs = append(errs, Error{Code: InvalidRequest, Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if len(r.Manager) > maxManager || strings.ContainsFunc(r.Manager,
		func(c rune) bool { return !unicode.IsPrint(c) || c == unicode.ReplacementChar }) {
		refuse("fieldManager", "the name of a field manager has 1 to %d bytes, all of them printable: choose another", maxManager)
	}
	if r.Prune && r.Set == "" {
		refuse("set", "prune needs the name of the set: only objects of the same set are removed")
	}
	if wrong := validation.IsValidLabelValue(r.Set); len(wrong) > 0 {
		refuse("set", "the name of a set becomes the label %s: %s", SetLabel, strings.Join(wrong, "; "))
	}
	return errs
}

// checkSize says whether the files are too many bytes altogether.
func checkSize(limits manifest.Limits, files []File) []Error {
	limit, size := limits.OrDefault().Bytes, 0
	for _, f := range files {
		size += len(f.Data)
	}
	if len(files) > 1 && size > limit {
		return []Error{{
			Code:    Code(manifest.TooLarge),
			Message: fmt.Sprintf("the files have %d bytes, more than the %d allowed: apply them in several requests", size, limit),
		}}
	}
	return nil
}

// bounded is a result that an answer has room for.
func bounded(r Result) Result {
	if more := len(r.Errors) - maxErrors + 1; more > 1 {
		atLeast := ""
		if slices.ContainsFunc(r.Errors, func(e Error) bool { return e.Code == Code(manifest.TooManyProblems) }) {
			atLeast = "at least "
		}
		r.Errors = append(r.Errors[:maxErrors-1:maxErrors-1], Error{
			Code: Code(manifest.TooManyProblems), Message: fmt.Sprintf("%s%d more problems are not listed: correct these first", atLeast, more),
		})
	}
	if more := len(r.Findings) - maxFindings + 1; more > 1 {
		r.Findings = append(r.Findings[:maxFindings-1:maxFindings-1], Finding{
			Code: "TOO_MANY_FINDINGS", Severity: Info, Message: fmt.Sprintf("%d more findings are not listed", more),
		})
	}
	return r
}
