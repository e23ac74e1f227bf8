package words

import (
	"regexp"
	"strings"
	"testing"
)

// A row is a phrase that readers stumble over, and what to write instead.
type row struct{ phrase, instead string }

// wordsOfBoth are phrases that neither the guide nor the source may have.
var wordsOfBoth = []row{
	{`\bbeliev(e[sd]?|ing)\b`, "trust, authenticate"},
	{`\b(NOT-)?honou?r(s|ed|ing)?\b`, "supported, not supported"},
	{`\b(a|an|the|of|this|that|another|every|any|which|one|two|other) (sort|manner)s? of\b`, "kind, type"},
	{`\bbec[oa]m(e|es|ing) (another|others?)\b|\b(is|are) others\b|\banother one each time\b`, "change, be replaced, be rotated"},
	{`\bwho asks?\b|\bwhoever\b`, "the client, the caller"},
	{`\bhow far\b`, "progress, status, distance"},
	{`\bconcerned (prox(y|ies)|clients?|clusters?|objects?)\b|\bthat it concerns\b`, "affected proxies"},
	{`\b(prox(y|ies)|clients?|clusters?|objects?) concerned\b`, "affected proxies"},
	{`\b(lies?|lay|stands?|stood) (in|on|at|beside|under|behind|near|next)\b`, "is in, is stored beside, is listed at"},
	{`\btak(es?|en|ing) up\b|\btook up\b`, "apply, reload, use, read"},
	{`\b(take|takes|took|taken) (a|an|any|every|no) (request|connection|value|argument)s?\b`, "accept"},
	{`\bleft out\b|\bleaves? (it |them )?out\b|\bleaving out\b`, "exclude, omit"},
	{`\bg(ive|ives|ave|iven|iving) up\b`, "release, cancel, time out"},
	{`\bhand(s|ed|ing)? out\b`, "serve"},
	{`\w*\W{0,5}\b(is|are|was|were) no \w+`, "is not a …"},
	{`\bwhat (became|becomes) of\b`, "the result, the status"},
	{`\bwho is silent\b|\bsome say so\b|\bsays? the other\b|\bif it is some\b`, "name the subject: a probe reports …"},
	{`\b(loses|lost) the stream\b`, "the stream is closed"},
	{`\bcomes behind\b`, "after"},
	{`\bmakes? of\b`, "computes from, derives from"},
	{`\b(says|said) of (a|an|the|its)\b`, "reports about, says about"},
	{`\bwhat holds\b`, "what is in force, the value that is used"},
	{`\b(is|are) told of\b`, "gets, sees"},
	{`\b(speaks?|spoke|spoken|speaking) of\b`, "name, refer to, describe, be about"},
	{`\bhears?\b|\bheard (of|from)\b|\b(am|is|are|was|were|last) heard\b`, "get, learn, learn of, be notified of"},
	{`\bthere(in|of)\b`, "in it, of it"},
	{`\b(finds?|found) (an? |the |any |no |every |all |more )?(problem|fault)s?\b`, "report, detect"},
	{`\b(object|cluster|service|prox(y|ies)|pod|endpoint)s? (goes?|went)( away| when| or comes?|\W*$|[.,;:])`, "be deleted"},
}

// wordsOfTexts are further phrases that what users read avoids: the guide, and texts of the program.
var wordsOfTexts = []row{
	{`\w*\W{0,5}\bis none\b`, "is not a …, does not exist"},
	{`\bnobody\b`, "no client, no cluster; name the subject"},
	{`\bsomebody\b`, "a client, another program; name the subject"},
}

// allowed are matches that are good English: "there is no …", "there is none", where nothing is denied of a
// subject, fixed phrases, and a column of `isthmus get` that is promised.
var allowed = regexp.MustCompile(`(?i)^there\b|^(0|nil|which)\b.* no limit\b|^NOT-HONOURED$|` +
	`\bno (longer|more|less|fewer|such|other|one|matter|wider)$`)

// TestRowsMatchWhatTheyAreFor: each row matches an example, and what is good English passes.
func TestRowsMatchWhatTheyAreFor(t *testing.T) {
	for text, bad := range map[string]bool{
		"a root is no authority": true, "There is no authority": false, "it is no longer there": false, "proxies are no clients": true,
		"the server becomes another one": true, "changes that are others": true,
		"Envoy takes up certificates": true, "What became of an apply.": true,
		"Who is silent for 2.5 s": true, "it takes no argument": true, "it takes 5 s": false,
		"a sort of policy": true, "sorts of the list": false,
		"Only what comes behind this cursor.": true, "the objects that it concerns": true, "values lie in etcd": true, "leave it out": true,
		"the hub finds a problem": true, "find the object": false, "when their pod goes.": true,
		"the host that a rule speaks of": true, "the client hears why": true, "a cluster was last heard": true, "they speak HTTP": false,
		"%q is none; it has letters": true, "a status write is none": true, "there is none": false, "with identity.ca: none": false,
		"nobody may ask": true, "left alone: somebody else": true, "the object goes through": false,
	} {
		found := false
		for _, p := range phrasesOf(t, wordsOfBoth, wordsOfTexts) {
			found = found || len(p.found(text)) > 0
		}
		if found != bad {
			t.Errorf("%q is found: %t", text, found)
		}
	}
}

func phrasesOf(t *testing.T, rows ...[]row) (all []phrase) {
	t.Helper()
	for _, list := range rows {
		for _, r := range list {
			p := phraseOf(t, `(?i)`+r.phrase)
			p.instead = r.instead
			all = append(all, p)
		}
	}
	return all
}

// found are the places of the phrase in a text.
func (p phrase) found(text string) (places [][]int) {
	for _, at := range p.FindAllStringIndex(text, -1) {
		if !allowed.MatchString(strings.TrimSpace(text[at[0]:at[1]])) {
			places = append(places, at)
		}
	}
	return places
}
