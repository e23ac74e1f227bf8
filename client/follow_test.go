package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/client"
)

// stream is what one connection brings.
type stream []string

func next(version, resync, cursor string) string {
	return fmt.Sprintf("event: next\ndata: {\"data\":{\"changes\":{\"snapshotVersion\":%q,\"resync\":%s,\"cursor\":%s,\"services\":[],\"clusters\":[],\"configObjects\":[]}}}\n\n", version, resync, cursor)
}

// streaming serves one stream to each connection and notes the cursors with which
// it was asked; the last stream stays open.
func streaming(t *testing.T, asked *[]string, streams ...stream) *client.Client {
	return serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Variables struct{ After *string } }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Accept") != "text/event-stream" {
			t.Errorf("asked with %v, %v", r.Header, err)
		}
		after := ""
		if body.Variables.After != nil {
			after = *body.Variables.After
		}
		at := len(*asked)
		*asked = append(*asked, after)
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = io.WriteString(w, ":\n\n"+strings.Join(streams[at], ""))
		_ = http.NewResponseController(w).Flush()
		if at == len(streams)-1 {
			<-r.Context().Done()
		}
	}))
}

func TestFollowComesBackBehindTheLastCursor(t *testing.T) {
	var asked []string
	c := streaming(t, &asked,
		stream{next("1", "true", "null"), next("1", "true", `"a"`), next("2", "false", `"b"`)},
		stream{next("3", "true", "null")},
		stream{next("3", "true", "null"), next("3", "true", `"c"`), ":\n\n", next("4", "false", `"d"`)},
	)
	var got []string
	enough := errors.New("enough")
	lost := 0
	err := c.Follow(t.Context(), client.Following{Lost: func(error, time.Duration) { lost++ }}, func(e client.Event) error {
		got = append(got, fmt.Sprintf("%s %v %v", e.SnapshotVersion, e.Begins, e.Resync))
		if e.SnapshotVersion == "4" {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || lost != 2 {
		t.Errorf("the error is %v, lost %d times", err, lost)
	}
	want := "1 true true, 1 false true, 2 false false, 3 true true, 3 true true, 3 false true, 4 false false"
	if strings.Join(got, ", ") != want {
		t.Errorf("the events are %v", got)
	}
	if fmt.Sprint(asked) != "[ b b]" {
		t.Errorf("asked behind %q", asked)
	}
}

func TestFollowEndsWithItsContextAndWithWhatNoRetryHeals(t *testing.T) {
	var asked []string
	c := streaming(t, &asked, stream{next("1", "true", `"a"`)})
	ctx, cancel := context.WithCancel(t.Context())
	if err := c.Follow(ctx, client.Following{}, func(client.Event) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	refusing := serving(t, answering(200, "text/event-stream",
		"event: next\ndata: {\"errors\":[{\"message\":\"no\",\"extensions\":{\"code\":\"GRAPHQL_VALIDATION_FAILED\"}}]}\n\nevent: complete\ndata:\n\n"))
	if err := refusing.Follow(t.Context(), client.Following{}, nil); client.CodeOf(err) != "GRAPHQL_VALIDATION_FAILED" {
		t.Errorf("the error is %v", err)
	}
	plain := serving(t, answering(400, "application/json", `{"errors":[{"message":"no","extensions":{"code":"BAD_USER_INPUT"}}]}`))
	if err := plain.Follow(t.Context(), client.Following{}, nil); client.CodeOf(err) != "BAD_USER_INPUT" {
		t.Errorf("the error is %v", err)
	}
}

func TestFollowTriesAgainWhileTheHubIsAway(t *testing.T) {
	c := open(t, client.Options{URL: "http://127.0.0.1:1"})
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	err := c.Follow(ctx, client.Following{Lost: func(error, time.Duration) {
		tries++
		if tries == 2 {
			cancel()
		}
	}}, nil)
	if !errors.Is(err, context.Canceled) || tries != 2 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

func TestStreamOfAnyOperation(t *testing.T) {
	c := serving(t, answering(200, "text/event-stream",
		"event: next\ndata: {\"data\":\ndata: 1}\n\nevent: other\ndata: x\n\nevent: complete\ndata:\n\n"))
	var got []string
	if err := c.Stream(t.Context(), client.Request{Query: "subscription { x }"},
		func(b []byte) error { got = append(got, string(b)); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != "{\"data\":\n1}" {
		t.Errorf("it brought %q", got)
	}
}
