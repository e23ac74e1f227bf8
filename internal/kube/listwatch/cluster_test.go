package listwatch

import (
	"errors"
	"strings"
	"testing"
)

// TestBK19VersionsOfAServer: one after the other is an upgrade, three within a
// minute are none; until it is steady, losing the link does not make it better.
func TestBK19VersionsOfAServer(t *testing.T) {
	c := NewCluster(nil, ClusterOptions{})
	ask := func(times int, versions ...string) (err error) {
		for i := range times {
			_, err = c.end(round{uid: "u1", server: versions[i%len(versions)]})
		}
		return err
	}
	if err := ask(40, "1.34", "1.35"); err != nil {
		t.Errorf("an upgrade: %v", err)
	}
	if err := ask(40, ""); err != nil {
		t.Errorf("it does not say: %v", err)
	}
	err := ask(3, "1.34", "1.35", "1.36")
	if err == nil || !strings.Contains(err.Error(), `"1.34", "1.35", "1.36"`) {
		t.Fatalf("the server changes on every request: %v", err)
	}
	if again := ask(3, "1.37", "1.38"); !errors.Is(again, err) {
		t.Errorf("and on: %v", again)
	}
	if _, cut := c.end(round{err: errors.New("the link is cut")}); !errors.Is(cut, err) {
		t.Errorf("without a link: %v", cut)
	}
	if err := ask(12, "1.36"); err != nil {
		t.Errorf("it is steady: %v", err)
	}
}

// TestF47AnotherClusterStaysHeld while it does not answer; the known one heals.
func TestF47AnotherClusterStaysHeld(t *testing.T) {
	c := NewCluster(nil, ClusterOptions{UID: "u1"})
	for _, step := range []struct {
		round round
		want  string
	}{
		{round{uid: "u1"}, ""},
		{round{err: errors.New("the link is cut")}, "the link is cut"},
		{round{uid: "u2"}, "another cluster"},
		{round{err: errors.New("the link is cut")}, "another cluster"},
		{round{uid: "u1"}, ""},
	} {
		if _, err := c.end(step.round); err == nil && step.want != "" || err != nil &&
			(step.want == "" || !strings.Contains(err.Error(), step.want)) {
			t.Errorf("after %+v: %v", step.round, err)
		}
	}
}
