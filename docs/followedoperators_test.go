package docs

import (
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

// answering is a curl that ends although a stream does not, and fails without an answer.
const answering = `answer=$(timeout 3 /usr/bin/curl -s "$@")
echo "$answer"
[ -n "$answer" ]`

// sameShape compares what answer.json has at a path of jq with a file: the names and the nesting of its fields.
const sameShape = `cat > shape.sh <<'END'
shape() { jq -c '[paths | map(if type == "number" then 0 else . end)] | unique'; }
got=$(jq "$1" ~/answer.json | shape) want=$(shape < $2)
[ "$got" = "$want" ] || { echo "the answer has $got, and the page $want"; exit 1; }
END`

// TestU72GraphQLIsUsedAsInTheGuide sends every operation of the page about GraphQL to the sample, with the Envoy that it names.
// The answers that it shows are compared by TestAnswersAreReal.
func TestU72GraphQLIsUsedAsInTheGuide(t *testing.T) {
	t.Parallel()
	const page = "graphql.md"
	m := newMachine(t)
	m.AddLocal("10.0.0.7")
	m.shim(t, "curl", answering)
	m.types("make run")
	m.types("isthmus status")
	m.reads(t, gettingStarted, "## 4. Connect an Envoy", "The node decides what Envoy receives:")
	m.types("isthmus get proxies | grep web-1.*SYNCED")
	m.reads(t, page, "## Queries", "What exactly was a proxy sent, and what did it accept? `sent` and `acked` are the resources as")
	m.types(sameShape)
	m.writes(t, "proxy.json", page, "text", `"userAgent"`)
	m.types("bash shape.sh '.data.proxies.nodes[0]' proxy.json")
	m.reads(t, page, "What exactly was a proxy sent, and what did it accept? `sent` and `acked` are the resources as", "## Changing configuration")
	m.types("jq -e '.data.node.clusterID == \"c1\"' ~/answer.json")
	m.reads(t, page, "## Changing configuration", "`rollback` restores the whole configuration of an earlier revision, as one new revision. The")
	m.reads(t, page, "`rollback` restores the whole configuration of an earlier revision, as one new revision. The", "## Following changes")
	m.reads(t, page, "## Following changes", "1. The first events contain the whole state, in pages of at most 500 items with `resync: true`.")
	m.resumes(t, page)
	m.reads(t, page, "A cursor identifies the state that you have, not a moment: another hub, or a restarted one,", "### WebSocket")
	m.types("curl -i http://127.0.0.1:8080/graphql?query=%7Bhub%7Brevision%7D%7D | grep -i '^isthmus-revision: [1-9]'")
	for header, want := range map[string]string{
		"Isthmus-Min-Revision: 999": "UNAVAILABLE", "Host: elsewhere.example": "FORBIDDEN", "Origin: https://elsewhere.example": "FORBIDDEN",
	} {
		m.types("curl -H '" + header + "' http://127.0.0.1:8080/graphql?query=%7Bhub%7Brevision%7D%7D | grep " + want)
	}
	for body, want := range map[string]string{
		`{"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "1234"}}}`:                              "PERSISTED_QUERY_NOT_SUPPORTED",
		`{"query": "{ services(first: 200) { nodes { endpoints(first: 50) { nodes { ports { name } } } } } }"}`: "up to 20401 objects, more than 16000",
		`{"query": "{ services(first: 501) { totalCount } }"}`:                                                  "BAD_USER_INPUT", `{"query": "{ hub "}`: "GRAPHQL_PARSE_FAILED",
	} {
		m.types("curl -H 'Content-Type: application/json' http://127.0.0.1:8080/graphql -d '" + body + "' | grep '" + want + "'")
	}
	m.types(`curl -i --max-time 2 --http1.1 -H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: MTIzNDU2Nzg5MDEyMzQ1Ng==' \
 -H 'Sec-WebSocket-Protocol: graphql-transport-ws' http://127.0.0.1:8080/graphql | grep -i 'sec-websocket-protocol: graphql-transport-ws'`)
	m.do(t, false)
}

// resumes has the reader follow changes by a cursor, after the first events of a subscription: a later one has what changed since and
// nothing else. With a cursor that the hub does not know, all is sent again.
func (m *readersMachine) resumes(t *testing.T, page string) {
	t.Helper()
	first := m.logOf(slices.IndexFunc(m.steps, func(s step) bool { return strings.HasPrefix(s.command, "isthmus query -f changes.graphql") }))
	m.types("again 'jq -se \".[-1].data.changes | .resync and (.cursor != null)\" " + first + "'\ncursor=$(jq -rs '.[-1].data.changes.cursor' " + first + ")")
	m.reads(t, page, "1. The first events contain the whole state, in pages of at most 500 items with `resync: true`.",
		"4. If the hub does not know the cursor, it sends the whole state again. Discard your state when")
	later := m.logOf(len(m.steps) - 1)
	m.types(`cat > later.yaml <<'END'
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: later, namespace: default}
spec: {host: hello.default.svc.cluster.local}
END
isthmus apply -f later.yaml`)
	m.types(`again 'jq -se "any(.[].data.changes.configObjects[]; .action == \"CREATE\" and .object.name == \"later\")" ` + later + "'")
	m.types("jq -se 'all(.[].data.changes; (.resync | not) and (.services | length) == 0)' " + later)
	m.types(`other=$(timeout 3 isthmus query 'subscription { changes(filter: {kinds: [CLUSTER]}) { cursor } }' | head -1 | jq -r .data.changes.cursor)`)
	m.types("isthmus query -f changes.graphql -v after=$other")
	m.types("again 'jq -se \".[0].data.changes.resync\" " + m.logOf(len(m.steps)-1) + "'")
	m.withOwn("after=CURSOR", "after=$cursor")
}

// TestU73MetricsAndLogAreUsedAsInTheGuide checks the files for Prometheus with its own tool, and the metrics of a hub. It reads
// the log, and changes its level.
func TestU73MetricsAndLogAreUsedAsInTheGuide(t *testing.T) {
	t.Parallel()
	const page = "metrics.md"
	m := newMachine(t)
	m.shim(t, "promtool", "exec "+installed(t, toolset.Promtool)+` "$@"`)
	m.installs(t)
	m.reads(t, page, "", "## Log")
	m.types("curl -s http://127.0.0.1:8081/metrics > metrics.txt\npromtool check metrics < metrics.txt")
	ofLater := []string{"cluster", "network", "drain", "code"} // there are none of these yet
	for _, row := range rows(t, read(t, page), "name") {
		if !slices.ContainsFunc(spans(row[2]), func(label string) bool { return slices.Contains(ofLater, label) }) {
			m.types("grep -q '^# TYPE " + spans(row[0])[0] + " " + row[1] + "$' metrics.txt")
		}
	}
	m.reads(t, page, "### Change the level while the hub runs", "### Keys of the log")
	m.types("grep 'msg=\"the log level changed\" logLevel=debug previous=info author=me' /var/lib/hub.log\nsudo systemctl stop isthmus")
	m.reads(t, page, "## Log", "### What is logged")
	m.types("unset ISTHMUS_SERVER ISTHMUS_TLS_CA ISTHMUS_TLS_CERT ISTHMUS_TLS_KEY\nisthmus status\nkill $hub; wait $hub || true\nhub=")
	m.types("jq -se 'all(.[]; has(\"time\") and has(\"level\") and has(\"msg\")) and any(.[]; .msg == \"the hub starts\") and any(.[]; .msg == \"the hub stopped\")' " +
		m.logOf(len(m.steps)-2))
	m.do(t, true)
}
