package transport_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// nested returns levels of parent inside one item, fields at the top included.
func nested(levels int) string {
	return "{item{" + strings.Repeat("parent{", levels-2) + "id" + strings.Repeat("}", levels-2) + "}}"
}

func bomb(levels int) string {
	var text strings.Builder
	text.WriteString("{item{...f0}}")
	for i := range levels {
		fmt.Fprintf(&text, " fragment f%d on Item{parent{...f%d} ...f%d}", i, i+1, i+1)
	}
	fmt.Fprintf(&text, " fragment f%d on Item{id}", levels)
	return text.String()
}

func introspectionBomb(levels int) string {
	return "{__schema{types{...f0}}}" + strings.ReplaceAll(strings.TrimPrefix(bomb(levels), "{item{...f0}}"), "on Item", "on __Type")
}

// doubling has fragments that each spread the next one twice, without a field of their own.
func doubling(levels int) string {
	text := "{items{...f0}}"
	for i := range levels {
		text += fmt.Sprintf(" fragment f%d on ItemConnection{...f%d ...f%d}", i, i+1, i+1)
	}
	return text + fmt.Sprintf(" fragment f%d on ItemConnection{nodes{id}}", levels)
}

// everyOther has fragments that each spread all others: as many ways through
// them as there are permutations.
func everyOther(count int) string {
	var text strings.Builder
	text.WriteString("{__schema{types{...f0}}}")
	for i := range count {
		fmt.Fprintf(&text, " fragment f%d on __Type{name", i)
		for j := range count {
			if j != i {
				fmt.Fprintf(&text, " ...f%d", j)
			}
		}
		text.WriteString("}")
	}
	return text.String()
}

func numbered(count int, format string) string {
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, format+" ", i)
	}
	return text.String()
}

func TestHostileDocumentsAreRefusedQuickly(t *testing.T) {
	handler := newHandler(t)
	for name, row := range map[string]struct{ query, code string }{
		"BG01 fields":                   {nested(10_000), "TOO_COMPLEX"},
		"BG01 lists in an argument":     {"{hello(name:" + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + ")}", "TOO_COMPLEX"},
		"BG01 one level too deep":       {nested(13), "TOO_COMPLEX"},
		"BG02 aliases":                  {"{item{" + numbered(31, "a%d:id") + "}}", "TOO_COMPLEX"},
		"BG02 ten thousand aliases":     {"{" + numbered(10_000, "a%d:hello") + "}", "TOO_COMPLEX"},
		"BG03 directives":               {"{hello" + strings.Repeat(" @skip(if:true)", 51) + "}", "TOO_COMPLEX"},
		"BG03 fifty thousand":           {"{hello" + strings.Repeat(" @x", 50_000) + "}", "TOO_COMPLEX"},
		"BG04 cycle":                    {"{item{...a}} fragment a on Item{parent{...b}} fragment b on Item{...a}", "GRAPHQL_VALIDATION_FAILED"},
		"BG04 bomb":                     {bomb(30), "TOO_COMPLEX"},
		"BG04 bomb below introspection": {introspectionBomb(30), "TOO_COMPLEX"},
		"BG04 doubling":                 {doubling(40), "TOO_COMPLEX"},
		"BG04 every other":              {everyOther(45), "GRAPHQL_VALIDATION_FAILED"},
		"BG04 fragments":                {"{item{...f1}}" + numbered(51, "fragment f%d on Item{id}"), "TOO_COMPLEX"},
		"BG05 same names":               {"{item{" + strings.Repeat("parent{id name} ", 2000) + "}}", "TOO_COMPLEX"},
		"BG05 as many as allowed":       {"{item{" + strings.Repeat("parent{id} ", 298) + "nothing}}", "GRAPHQL_VALIDATION_FAILED"},
		"BG06 operations":               {numbered(11, "query q%d{hello}"), "TOO_COMPLEX"},
		"root fields":                   {"{" + strings.Repeat("hello ", 21) + "}", "TOO_COMPLEX"},
		"root fields by fragment":       {"{...f ...f ...f} fragment f on Query{" + strings.Repeat("hello ", 7) + "}", "TOO_COMPLEX"},
		"BG07 largest page":             {"{items(first:2147483647){totalCount}}", "BAD_USER_INPUT"},
		"BG07 negative page":            {"{items(last:-1){totalCount}}", "BAD_USER_INPUT"},
		"BG07 empty page":               {"{items(first:0){totalCount}}", "BAD_USER_INPUT"},
		"BG07 page of text":             {`{items(first:"1"){totalCount}}`, "GRAPHQL_VALIDATION_FAILED"},
		"both ends":                     {"{items(first:1,last:1){totalCount}}", "BAD_USER_INPUT"},
		"cost of pages in pages":        {"{items(first:500){nodes{items(first:500){nodes{id}}}}}", "TOO_COMPLEX"},
		"cost of edges":                 {"{items(first:100){edges{node{items(first:100){edges{node{id}}}}}}}", "TOO_COMPLEX"},
		"cost of default pages":         {"{items{nodes{items{nodes{items{nodes{id}}}}}}}", "TOO_COMPLEX"},
		"arguments that do not exist":   {"{items(" + numbered(3300, "a%d:1") + "){totalCount}}", "GRAPHQL_VALIDATION_FAILED"},
		"BG16 misspelt field":           {"{helo}", "GRAPHQL_VALIDATION_FAILED"},
		// Names like these would be looked for.
		"name of a megabyte":          {"{" + strings.Repeat("x", 1<<20-100) + "}", "TOO_COMPLEX"},
		"argument of a megabyte":      {"{items(" + strings.Repeat("x", 1<<20-100) + ":1){totalCount}}", "TOO_COMPLEX"},
		"type of a megabyte":          {"{... on " + strings.Repeat("x", 1<<20-100) + "{hello}}", "TOO_COMPLEX"},
		"name of the longest allowed": {"{" + strings.Repeat("x", 128) + "}", "GRAPHQL_VALIDATION_FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			var got answer
			quickest := time.Hour
			for range 3 {
				before := testbed.UsedCPU(t)
				got = send(t, handler, post(row.query))
				quickest = min(quickest, testbed.UsedCPU(t)-before)
			}
			if quickest > time.Second { // Promised are 100 ms; the rest is for the race detector.
				t.Errorf("it took %s of a processor", quickest)
			}
			if got.code() != row.code || got.status != 422 {
				t.Errorf("got %d %.300s, want 422 %s", got.status, got.body, row.code)
			}
		})
	}
}

func TestOrdinaryDocumentsPass(t *testing.T) {
	introspection, err := os.ReadFile(filepath.Join("testdata", "introspection.graphql"))
	if err != nil {
		t.Fatal(err)
	}
	handler := newHandler(t)
	for name, query := range map[string]string{
		"twelve levels":              nested(12),
		"thirty aliases":             "{item{" + numbered(30, "a%d:id") + "}}",
		"the editor's introspection": string(introspection),
		"fifty by a hundred":         "{items(first:50){nodes{id items(first:100){totalCount nodes{id}}}}}",
		"counts of five hundred":     "{items(first:500){nodes{items{totalCount}}}}",
		"last page":                  "{items(last:500){edges{cursor node{id}}}}",
	} {
		if got := send(t, handler, post(query)); got.status != 200 {
			t.Errorf("%s: got %d %s", name, got.status, got.body)
		}
	}
}

func TestPageSizeComesInVariables(t *testing.T) {
	handler := newHandler(t)
	for variables, status := range map[string]int{
		`{}`: 200, `{"n":500}`: 200, `{"n":null}`: 200, `{"n":501}`: 422, `{"n":1.5}`: 422, `{"n":4294967297}`: 422,
	} {
		body := `{"query":"query($n:Int){items(first:$n){nodes{id}}}","variables":` + variables + `}`
		if got := send(t, handler, postBody(body)); got.status != status {
			t.Errorf("%s got %d %s", variables, got.status, got.body)
		}
	}
}

func TestKnownDocumentsPassAgain(t *testing.T) {
	handler := newHandler(t)
	for range 3 {
		if got := send(t, handler, post("query($n:Int){items(first:$n){totalCount}}")); got.status != 200 {
			t.Fatalf("got %d %s", got.status, got.body)
		}
		if got := send(t, handler, post("{items(first:501){totalCount}}")); got.status != 422 {
			t.Fatalf("a refused page passes later: %d", got.status)
		}
	}
}
