package model

import (
	"slices"
	"strings"
)

// Pages of the documentation that explain codes. In docs/errors.md each has a section.
const (
	docPages       = "https://isthmus.dev/docs/"
	errorPage      = docPages + "errors#"
	clusterPage    = docPages + "clusters-reference#checks"
	kubeconfigPage = docPages + "clusters-reference#kubeconfigs-what-is-refused"

	ofKubeconfigs = "KUBECONFIG_"
)

// errorCodes have a section in docs/errors.md.
var errorCodes = []string{
	"AMBIGUOUS", "ANCHOR", "ATTACHED_ELSEWHERE", "BAD_USER_INPUT", "BUSY", "CONFLICT", "DIRECTIVE", "DUPLICATE_KEY",
	"DUPLICATE_OBJECT", "DUPLICATE_VALUE", "EMPTY", "FORBIDDEN", "GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED",
	"IDEMPOTENCY_KEY_REUSED", "INTERNAL", "INVALID", "INVALID_CLUSTER_ID", "INVALID_REQUEST", "INVALID_TTL", "KEY",
	"MERGE_KEY", "NAMESPACE_MISMATCH", "NOTHING_HELD", "NOTHING_TO_DO", "NOT_AN_OBJECT", "NOT_ATTACHED", "NOT_CHECKED",
	"NOT_FOUND", "NOT_SUPPORTED", "NOT_UTF8", "NUL", "NUMBER", "OTHER_PROVIDER", "PERSISTED_QUERY_NOT_SUPPORTED",
	"PRECONDITION_FAILED", "PROTECTED", "RATE_LIMITED", "READ_ONLY", "REQUIRED", "SIGNER_FROM_OUTSIDE",
	"SIGNER_ROTATING", "SIGNER_UNUSABLE", "STORAGE_FULL", "STORAGE_NOT_WRITABLE", "STORE_REFUSED", "SUBSTITUTION", "SYNTAX", "TAB", "TAG",
	"TOO_COMPLEX", "TOO_DEEP", "TOO_LARGE", "TOO_LONG", "TOO_MANY", "TOO_MANY_DOCUMENTS", "TOO_MANY_PROBLEMS", "TYPE",
	"UNAUTHENTICATED", "UNAVAILABLE", "UNKNOWN_FIELD", "UNKNOWN_KIND", "UNKNOWN_REVISION", "UNKNOWN_VERSION",
}

// clusterCodes are those of checks of clusters.
var clusterCodes = []string{
	"ADDRESS_OVERLAP", "API_UNSTABLE", "API_VERSION", "CLOCK", "CREDENTIALS_EXPIRY", "DUPLICATE_CLUSTER",
	"DUPLICATE_CLUSTER_ALIAS", "DUPLICATE_CLUSTER_ID", "INVALID_CONSUL", "NETWORK_CLASH", "NOT_API_SERVER",
	"OTHER_CLUSTER", "REACHABILITY", "RIGHTS", "RIGHTS_TOO_WIDE", "SERVER_CERTIFICATE", "TRUST_DOMAIN", "UNAUTHORIZED",
}

// kubeconfigRules are those of kubeconfigs, without what all their codes begin with.
var kubeconfigRules = []string{
	"ALIAS", "AUTH_PROVIDER", "BASE64", "CERTIFICATE", "CLUSTER_ID", "CONTEXT", "DANGLING_REFERENCE", "DUPLICATE",
	"ENCODING", "ENCRYPTED_KEY", "EXEC", "EXPIRED", "FILE_REFERENCE", "FOLDER", "IMPERSONATION", "INSECURE_TLS",
	"KEY_MISMATCH", "MISSING", "NO_CREDENTIALS", "NOT_A_FILE", "NOT_YET_VALID", "PASSWORD", "PEM", "PROXY",
	"SERVER_ADDRESS", "SERVER_URL", "SEVERAL_DOCUMENTS", "SYNTAX", "TAB", "TLS_SERVER_NAME", "TOKEN", "TOO_DEEP",
	"TOO_LARGE", "TWO_FILES", "UNKNOWN_FIELD", "UNREADABLE", "VANISHED", "WEAK_KEY", "WRONG_TYPE",
}

// ErrorCodes are all codes of errors, sorted.
func ErrorCodes() []ErrorCode {
	codes := slices.Concat(errorCodes, clusterCodes)
	for _, rule := range kubeconfigRules {
		codes = append(codes, ofKubeconfigs+rule)
	}
	slices.Sort(codes)
	all := make([]ErrorCode, len(codes))
	for i, code := range codes {
		all[i] = ErrorCode{Code: code, DocURL: docURL(code)}
	}
	return all
}

// docURL is the place in the documentation that explains a code.
func docURL(code string) string {
	switch {
	case strings.HasPrefix(code, ofKubeconfigs):
		return kubeconfigPage
	case slices.Contains(clusterCodes, code):
		return clusterPage
	default:
		return errorPage + strings.ToLower(code)
	}
}
