package kube

import (
	"fmt"
	"strings"
)

// Code names a rule that an input broke. Codes are stable: scripts and tests compare them.
type Code string

// The codes of Parse. The comment names the rule of the bad-input catalogue.
const (
	CodeTooLarge        Code = "too-large"          // B-K12
	CodeEncoding        Code = "encoding"           // B-K12: BOM, binary, control characters
	CodeTab             Code = "tab"                // B-K12
	CodeSyntax          Code = "syntax"             // B-K12
	CodeDocuments       Code = "several-documents"  // B-K12
	CodeAlias           Code = "alias"              // B-K12
	CodeDepth           Code = "too-deep"           // B-K12
	CodeDuplicate       Code = "duplicate"          // B-K12: keys and names
	CodeUnknownField    Code = "unknown-field"      // S43
	CodeType            Code = "wrong-type"         // S43
	CodeMissing         Code = "missing"            // S43
	CodeExec            Code = "exec"               // B-K1
	CodeAuthProvider    Code = "auth-provider"      // B-K2
	CodeFileReference   Code = "file-reference"     // B-K3
	CodeInsecureTLS     Code = "insecure-tls"       // B-K4
	CodeServerURL       Code = "server-url"         // B-K6
	CodeServerAddress   Code = "server-address"     // B-K7
	CodeProxy           Code = "proxy"              // B-K8
	CodeServerName      Code = "tls-server-name"    // B-K9
	CodeImpersonation   Code = "impersonation"      // B-K10
	CodeContext         Code = "context"            // B-K11
	CodeReference       Code = "dangling-reference" // B-K11
	CodeBase64          Code = "base64"             // B-K13
	CodePEM             Code = "pem"                // B-K13
	CodeCertificate     Code = "certificate"        // B-K13
	CodeExpired         Code = "expired"            // B-K13, B-K14
	CodeNotYetValid     Code = "not-yet-valid"      // B-K13, B-K14
	CodeWeakKey         Code = "weak-key"           // B-K13
	CodeEncryptedKey    Code = "encrypted-key"      // B-K13
	CodeKeyMismatch     Code = "key-mismatch"       // B-K13
	CodeToken           Code = "token"              // B-K14
	CodePassword        Code = "password"           // S43
	CodeNoCredentials   Code = "no-credentials"     // S43
	CodeClusterID       Code = "cluster-id"         // B-K15
	CodeNotAFile        Code = "not-a-file"
	CodeUnreadable      Code = "unreadable"
	CodeTwoFiles        Code = "two-files"
	CodeFolder          Code = "folder"
	maxFindings              = 64
	tooManyFindingsText      = "further problems are not listed"
)

// Finding is one problem of one field. Field and Message never hold a value of the input.
type Finding struct {
	Code    Code
	Field   string
	Message string
}

// String is one line: "field: message (code)".
func (f Finding) String() string {
	if f.Field == "" {
		return fmt.Sprintf("%s (%s)", f.Message, f.Code)
	}
	return fmt.Sprintf("%s: %s (%s)", f.Field, f.Message, f.Code)
}

// Refusal is the error of Parse: every problem that was found, in the order of the file. It is never empty.
type Refusal struct {
	Findings []Finding
}

func (r *Refusal) Error() string {
	lines := make([]string, 0, len(r.Findings))
	for _, finding := range r.Findings {
		lines = append(lines, finding.String())
	}
	return "kubeconfig refused: " + strings.Join(lines, "; ")
}

// Has reports whether a finding carries the code.
func (r *Refusal) Has(code Code) bool {
	for _, finding := range r.Findings {
		if finding.Code == code {
			return true
		}
	}
	return false
}

// findings collects problems; beyond maxFindings it only says that there are more.
type findings []Finding

func (f *findings) add(code Code, field, message string) {
	switch {
	case len(*f) < maxFindings:
		*f = append(*f, Finding{Code: code, Field: field, Message: message})
	case len(*f) == maxFindings:
		*f = append(*f, Finding{Code: code, Message: tooManyFindingsText})
	}
}

func (f findings) err() error {
	if len(f) == 0 {
		return nil
	}
	return &Refusal{Findings: f}
}
