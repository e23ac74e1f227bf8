package cmdutil

// codesRemedy is what to do about a refusal that has one of the codes.
type codesRemedy struct {
	codes []string
	do    string
}

// remedies are those of every code, the more particular first.
func remedies() []codesRemedy {
	return []codesRemedy{
		{[]string{"CONFLICT"}, "remove the fields that other managers own, or take them over with --force-conflicts"},
		{
			[]string{"PRECONDITION_FAILED"},
			"the configuration has changed: look with \"isthmus diff\" and \"isthmus history\", then repeat with the current revision",
		},
		{[]string{"IDEMPOTENCY_KEY_REUSED"}, "another request had this key: repeat with a new one; every command line makes its own"},
		{
			[]string{"UNAVAILABLE"},
			"\"isthmus query '{ configSources { name problems { message } } }'\" shows the state of the store; when it answers, \"isthmus history\" says whether the change was made: if not, repeat it",
		},
		{[]string{"BUSY"}, "repeat it"},
		{[]string{"STORAGE_FULL"}, "the store is full: delete what is not needed, or give it more room"},
		{
			[]string{"STORAGE_NOT_WRITABLE"},
			"the hub cannot write its data folder: do what the message says; the hub serves what it has meanwhile",
		},
		{
			[]string{"STORE_REFUSED", "TOO_LARGE", "TOO_MANY_DOCUMENTS"},
			"the request is too large: split it, and apply the parts one after the other",
		},
		{[]string{"READ_ONLY"}, "change the object where it comes from; \"isthmus describe\" says where that is"},
		{[]string{"PROTECTED"}, "keep the protected objects among the manifests, or apply them without their annotation first"},
		{[]string{"NOT_FOUND"}, "\"isthmus get\" lists the objects; --ignore-not-found treats missing objects as deleted"},
		{[]string{"NOTHING_TO_DO"}, "name what to delete; \"isthmus get\" lists the objects"},
		{[]string{"UNKNOWN_REVISION"}, "\"isthmus history\" lists the revisions"},
		{
			[]string{"UNKNOWN_KIND", "UNKNOWN_VERSION"},
			"correct the manifests and repeat; \"isthmus api-resources -o wide\" lists kinds and versions",
		},
		{[]string{"INTERNAL"}, "this is a bug in the hub: its log has the details"},
		{[]string{"INVALID_REQUEST", "INVALID_TTL"}, "correct the request and repeat; --help lists the values of flags"},
		{ofManifests(), "correct the manifests and repeat; \"isthmus validate\" checks without a hub, \"isthmus diff\" with it"},
	}
}

// ofManifests are the codes of what is wrong with a manifest itself.
func ofManifests() []string {
	return []string{
		"AMBIGUOUS", "ANCHOR", "DIRECTIVE", "DUPLICATE_KEY", "DUPLICATE_OBJECT", "DUPLICATE_VALUE", "EMPTY", "FORBIDDEN", "INVALID", "KEY",
		"MERGE_KEY", "NOT_AN_OBJECT", "NOT_CHECKED", "NOT_SUPPORTED", "NOT_UTF8", "NUL", "NUMBER", "REQUIRED", "SUBSTITUTION", "SYNTAX", "TAB",
		"TAG", "TOO_DEEP", "TOO_LONG", "TOO_MANY", "TOO_MANY_PROBLEMS", "TYPE", "UNKNOWN_FIELD",
	}
}

// Remedy is what to do about the codes of a refusal; of several the first of
// remedies.
func Remedy(codes map[string]bool) string {
	for _, r := range remedies() {
		for _, code := range r.codes {
			if codes[code] {
				return r.do
			}
		}
	}
	return "correct the request and repeat; if the hub is newer than this program (\"isthmus version\"), use the program of its version"
}
