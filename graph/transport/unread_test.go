package transport_test

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"isthmus.dev/isthmus/graph/transport"
)

// TestR03SubscriberThatNeverReadsHoldsOneEvent: while a client does not read an event, the hub holds that one in memory, and
// executes no further one for it.
func TestR03SubscriberThatNeverReadsHoldsOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		schema, server := serveInMemory(t, transport.Options{})
		response := ask(t, server, post("subscription{floods}").with("Accept", eventsType))
		synctest.Wait()
		if n := schema.flooded.Load(); response.StatusCode != http.StatusOK || n != 1 {
			t.Errorf("status %d; %d events were executed for a client that read none, want 1", response.StatusCode, n)
		}
		read := make([]byte, 3<<20) // two events, and the beginning of the third
		if _, err := io.ReadFull(response.Body, read); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := schema.flooded.Load(); n > 4 {
			t.Errorf("%d events were executed for a client that read two", n)
		}
	})
}
