//go:build browser

package graphiql_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// tab is a tab of Chromium that runs scripts (Chrome DevTools Protocol).
type tab struct {
	t       *testing.T
	ws      *websocket.Conn
	ctx     context.Context
	session string
	asked   int
}

// openTab starts Chromium on address and returns its tab.
func openTab(t *testing.T, address string) *tab {
	t.Helper()
	binary, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("this test needs the program chromium (Debian: apt-get install chromium)")
	}
	ctx, kill := context.WithCancel(context.WithoutCancel(t.Context()))
	command := exec.CommandContext(ctx, binary, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--no-first-run", "--disable-dev-shm-usage", "--remote-debugging-port=0",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--user-data-dir="+t.TempDir(), "--window-size=1280,800", "about:blank")
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the browser was told to close
		late := time.AfterFunc(30*time.Second, kill)
		_ = command.Wait()
		late.Stop()
		kill()
	})
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if _, at, found := strings.Cut(lines.Text(), "DevTools listening on "); found {
			go func() { // it must not wait for its own log
				for lines.Scan() {
				}
			}()
			return attach(t, strings.TrimSpace(at), address)
		}
	}
	kill()
	t.Fatal("chromium does not say where its tools listen")
	return nil
}

func attach(t *testing.T, tools, address string) *tab {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), tools, nil)
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(16 << 20)
	c := &tab{t: t, ws: ws, ctx: context.WithoutCancel(t.Context())}
	t.Cleanup(func() {
		c.session = ""
		_ = c.call("Browser.close", nil, new(struct{}))
		_ = ws.CloseNow()
	})
	var target struct{ TargetID string }
	c.must("Target.createTarget", map[string]any{"url": address}, &target)
	var session struct{ SessionID string }
	c.must("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	c.session = session.SessionID
	return c
}

func (c *tab) must(method string, params map[string]any, into any) {
	c.t.Helper()
	if err := c.call(method, params, into); err != nil {
		c.t.Fatal(err)
	}
}

func (c *tab) call(method string, params map[string]any, into any) error {
	c.asked++
	message := map[string]any{"id": c.asked, "method": method, "params": params}
	if c.session != "" {
		message["sessionId"] = c.session
	}
	request, err := json.Marshal(message)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.ctx, 3*time.Minute)
	defer cancel()
	if err := c.ws.Write(ctx, websocket.MessageText, request); err != nil {
		return err
	}
	for {
		var answer struct {
			ID            int
			Result, Error json.RawMessage
		}
		_, data, err := c.ws.Read(ctx)
		if err == nil {
			err = json.Unmarshal(data, &answer)
		}
		switch {
		case err != nil:
			return err
		case answer.ID != c.asked: // an event
		case answer.Error != nil:
			return fmt.Errorf("%s: %s", method, answer.Error)
		default:
			return json.Unmarshal(answer.Result, into)
		}
	}
}

// until runs a script in the page until its value is true.
func (c *tab) until(what, script string) {
	c.t.Helper()
	var last struct{ Result struct{ Value any } }
	limit := time.NewTimer(3 * time.Minute)
	defer limit.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := c.call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true}, &last)
		if err == nil && last.Result.Value == true {
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			var page struct{ Result struct{ Value any } }
			_ = c.call("Runtime.evaluate", map[string]any{"expression": "document.body.innerText", "returnByValue": true}, &page)
			c.t.Fatalf("waiting for %s: %v; the page shows %v", what, err, page.Result.Value)
		}
	}
}
