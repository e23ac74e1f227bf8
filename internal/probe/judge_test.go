package probe

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
)

var (
	start  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	theWay = federation.VerdictKey{Observer: "n1", Gateway: netip.MustParseAddrPort("192.0.2.1:15443")}
)

const beat = 500 * time.Millisecond // between two reports of a prober

// change is a changed verdict, and the time since the start.
type change struct {
	After     time.Duration
	Reachable bool
}

// story is what probers say, beat by beat: + well, - unwell, a blank nothing, ! it
// left.
func play(j *Judge, probers ...string) (changes []change) {
	longest := 0
	for _, p := range probers {
		longest = max(longest, len(p))
	}
	var last *bool
	for i := range longest {
		at := start.Add(time.Duration(i) * beat)
		for n, said := range probers {
			if i >= len(said) {
				continue
			}
			name := fmt.Sprint(n)
			switch said[i] {
			case '+', '-':
				j.Add(Report{Prober: name, Path: theWay, Reachable: said[i] == '+'}, at)
			case '!':
				j.Left(name)
			}
		}
		all, _ := j.Verdicts(at)
		if v, known := all[theWay]; known && (last == nil || *last != v.Reachable) {
			last = &v.Reachable
			changes = append(changes, change{at.Sub(start), v.Reachable})
		}
	}
	return changes
}

func TestVerdicts(t *testing.T) {
	none := federation.Verdict{}
	dead := federation.Verdict{Observer: "n1", Since: start.Add(-time.Hour)}
	for name, c := range map[string]struct {
		before  federation.Verdict
		probers []string
		want    string
	}{
		"nothing was said":                       {none, []string{"    "}, "[]"},
		"well":                                   {none, []string{"++++"}, "[{0s true}]"},
		"dead: at once":                          {none, []string{"++-"}, "[{0s true} {1s false}]"},
		"ignored before it was ever well":        {none, []string{"-----+"}, "[{2.5s true}]"},
		"dead from the start, after the grace":   {none, []string{"--------"}, "[{3s false}]"},
		"back after five seconds":                {none, []string{"+-+++++++++++++"}, "[{0s true} {500ms false} {6s true}]"},
		"an interruption restarts it":            {none, []string{"+-+++++-+++++++++++++"}, "[{0s true} {500ms false} {9s true}]"},
		"a pause restarts it":                    {none, []string{"+-+++++      +++++++++++++"}, "[{0s true} {500ms false} {11.5s true}]"},
		"silence says nothing":                   {none, []string{"+                    "}, "[{0s true}]"},
		"silence leaves the dead dead":           {none, []string{"+-                   "}, "[{0s true} {500ms false}]"},
		"any prober is enough":                   {none, []string{"++-----", "+++++++"}, "[{0s true}]"},
		"silent for long, it is learnt again":    {none, []string{"+           -", "            -"}, "[{0s true} {6s false}]"},
		"all of them":                            {none, []string{"++-----", "++++++-"}, "[{0s true} {3s false}]"},
		"one that is silent has no say":          {none, []string{"++---------", "++++       "}, "[{0s true} {4s false}]"},
		"one that left has none either":          {none, []string{"++---------", "++++!      "}, "[{0s true} {2s false}]"},
		"one that came has none until it may":    {none, []string{"  -----    ", "+++++++++++"}, "[{0s true}]"},
		"a new one alone brings the dead back":   {none, []string{"+-----------", " +++++++++++"}, "[{0s true}]"},
		"what was before counts: it stays":       {dead, []string{"+++++"}, "[{0s false}]"},
		"what was before counts: until recovery": {dead, []string{"+++++++++++"}, "[{0s false} {5s true}]"},
	} {
		t.Run(name, func(t *testing.T) {
			j := NewJudge(Rules{})
			if c.before != (federation.Verdict{}) {
				j.Adopt(theWay, c.before, start)
			}
			if got := fmt.Sprint(play(j, c.probers...)); got != c.want {
				t.Errorf("the verdicts are %s, want %s", got, c.want)
			}
		})
	}
}

// TestF85ReturnsHaveAPause: a gateway that comes back and dies again comes back
// once in thirty seconds, however often it tries.
func TestF85ReturnsHaveAPause(t *testing.T) {
	story := "+"
	for range 10 {
		story += "-++++++++++++" // well for 6 s, which is longer than recovery takes
	}
	var returns []time.Duration
	for _, c := range play(NewJudge(Rules{}), story)[1:] {
		if c.Reachable {
			returns = append(returns, c.After)
		}
	}
	for i := 1; i < len(returns); i++ {
		if gap := returns[i] - returns[i-1]; gap < 30*time.Second {
			t.Errorf("it came back at %s and at %s", returns[i-1], returns[i])
		}
	}
	if len(returns) != 2 {
		t.Errorf("it came back at %v, want twice in 65 s", returns)
	}
}

// TestPropertyFlappingIsOneChangeEachWay: a link that flaps ten times in thirty
// seconds, whatever its duty and however many watch it, makes at most two changes.
func TestPropertyFlappingIsOneChangeEachWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		story := "+"
		for range 10 {
			bad := rapid.IntRange(1, 5).Draw(t, "bad") // of six beats
			for i := range 6 {
				story += map[bool]string{true: "-", false: "+"}[i < bad]
			}
		}
		for range 20 {
			story += "+"
		}
		probers := []string{story, story}[:rapid.IntRange(1, 2).Draw(t, "probers")]
		if changes := play(NewJudge(Rules{}), probers...)[1:]; len(changes) != 2 || changes[0].Reachable || !changes[1].Reachable {
			t.Fatalf("%s makes %v", story, changes)
		}
	})
}

// TestPropertyVerdicts: whatever the reports, a verdict changes only
// for a reason that the rules name, and asking again when told to loses nothing.
func TestPropertyVerdicts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stories := rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("+++---  !")), 1, 120, -1), 1, 3).Draw(t, "stories")
		changes := play(NewJudge(Rules{}), stories...)
		var returned time.Duration
		for i, c := range changes {
			at := int(c.After / beat)
			if !c.Reachable && saidWithin(stories, '-', at-5, at) == 0 {
				t.Errorf("it became unreachable after %s although nobody said so", c.After)
			}
			if c.Reachable && i > 0 && saidWithin(stories, '+', at-10, at) < 2 {
				t.Errorf("it became reachable after %s although it was well for less than recovery takes", c.After)
			}
			if c.Reachable && i > 0 {
				if returned > 0 && c.After-returned < 30*time.Second {
					t.Errorf("it came back at %s and %s", returned, c.After)
				}
				returned = c.After
			}
		}
	})
}

// saidWithin counts the beats from first to last at which somebody said it.
func saidWithin(stories []string, what byte, first, last int) (beats int) {
	for i := max(0, first); i <= last; i++ {
		if slices.ContainsFunc(stories, func(s string) bool { return i < len(s) && s[i] == what }) {
			beats++
		}
	}
	return beats
}

// TestAskedAgainInTime: a caller that asks when it was told to sees the change at the
// moment at which it happens.
func TestAskedAgainInTime(t *testing.T) {
	j := NewJudge(Rules{})
	j.Add(Report{Prober: "a", Path: theWay, Reachable: true}, start)
	j.Add(Report{Prober: "b", Path: theWay, Reachable: true}, start)
	j.Verdicts(start)
	for at := start; at.Before(start.Add(2 * time.Second)); at = at.Add(beat) {
		j.Add(Report{Prober: "b", Path: theWay}, at)
	}
	all, again := j.Verdicts(start.Add(2 * time.Second))
	if want := start.Add(2500 * time.Millisecond); !all[theWay].Reachable || !again.Equal(want) {
		t.Errorf("the verdict is %+v, to be asked for again at %s, want %s", all[theWay], again, want)
	}
	all, _ = j.Verdicts(again)
	if all[theWay].Reachable || !all[theWay].Since.Equal(again) {
		t.Errorf("at that time it is %+v", all[theWay])
	}
	all, again = j.Verdicts(start.Add(time.Minute))
	if len(all) != 1 || !again.IsZero() {
		t.Errorf("after a minute of silence there is %v, to be asked for again at %s", all, again)
	}
	j.Add(Report{Prober: "a", Path: theWay, Reachable: true}, start.Add(time.Minute))
	j.Verdicts(start.Add(time.Minute + 2*time.Second))
	j.Keep(func(federation.VerdictKey) bool { return false })
	all, again = j.Verdicts(again)
	if len(all) != 0 || !again.IsZero() {
		t.Errorf("what nobody wants is still there: %v", all)
	}
}
