package envoy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/federation/federationtest"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/supported"
)

// TestG76EachFieldOfASpecHasAnEffectOrAReason changes each field of the objects of
// testdata/supported/specs whose specs are not messages, one at a time, and expects of a supported
// one that something else is derived or found, or that some proxy gets other bytes; of a field
// without an effect that the object says so.
func TestG76EachFieldOfASpecHasAnEffectOrAReason(t *testing.T) {
	t.Parallel()
	set, err := schema.Load(kind.Expressions)
	if err != nil {
		t.Fatal(err)
	}
	trials := map[federation.Kind]*specTrial{}
	for _, k := range supported.Kinds() {
		if _, known := set.Kind(k); known && !isMessage(t, k) && supported.Idle(k) == "" {
			fields, err := set.Fields(k)
			if err != nil {
				t.Fatal(err)
			}
			trial := &specTrial{
				kind: k, set: set, fields: fields, matters: map[string]bool{}, works: map[string]bool{}, seen: map[string]bool{},
				told: map[string]bool{}, values: map[string][]any{},
			}
			trial.judge(t, fields, "", func(path string, verdict supported.Verdict) {
				trial.matters[path] = verdict != supported.No
			})
			trials[k] = trial
		}
	}
	files, err := filepath.Glob("testdata/supported/specs/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("there is nothing to try", err)
	}
	for _, collect := range []bool{true, false} {
		for _, file := range files {
			s := federationtest.Load(t, file)
			for _, o := range slices.Collect(s.Config.Objects()) {
				if trial := trials[o.Key.Of()]; trial != nil && !strings.HasPrefix(o.Key.Name, "gateway-api-") {
					trial.object(t, s, o, collect)
				}
			}
		}
	}
	for _, trial := range trials {
		trial.judge(t, trial.fields, "", func(path string, verdict supported.Verdict) { trial.leaf(t, path, verdict) })
	}
}

// triedElsewhere are fields by which the hub acts, and which tests beside the code that does so try: each field of
// a Cluster (internal/hub/clusters), what is read of clusters (federation/config/crd and ingress), and
// when a ramp began (federation).
var triedElsewhere = map[federation.Kind][]string{
	federation.MeshSettingsKind: {"sources", "ingressStatus"},
	federation.DrainKind:        {"rampStart"},
}

func isMessage(t *testing.T, k federation.Kind) bool {
	t.Helper()
	spec, err := kind.Decode(k, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, is := spec.(proto.Message)
	return is
}

// specTrial finds out which fields of a kind have an effect, and which are reported.
type specTrial struct {
	kind    federation.Kind
	set     *schema.Set
	fields  []schema.Field
	matters map[string]bool  // paths of which another value must have an effect, or must have none
	seen    map[string]bool  // paths that some object has
	works   map[string]bool  // paths of which another value has an effect
	told    map[string]bool  // paths that a finding names
	pieces  pieces           // of the proxies of the present scenario
	values  map[string][]any // texts of all objects, by the last part of the path
}

// judge calls each with the paths of the fields and what the table has about them.
func (f *specTrial) judge(t *testing.T, fields []schema.Field, at string, each func(path string, verdict supported.Verdict)) {
	t.Helper()
	for _, field := range fields {
		path := strings.TrimPrefix(at+"."+field.Name, ".")
		switch verdict, why := supported.Says(f.kind, path, len(field.Below) > 0); {
		case verdict == supported.Partly:
			f.judge(t, field.Below, path, each)
		case verdict == supported.ByHub && (f.kind == federation.ClusterKind || slices.Contains(triedElsewhere[f.kind], path)):
		case verdict == supported.No && why == supported.Unlisted:
			t.Errorf("%s: %s is neither supported nor listed as not supported", f.kind, path)
		default:
			f.leaves([]schema.Field{field}, at, func(leaf string) { each(leaf, verdict) })
		}
	}
}

// leaf compares what the table has about a field with what the trial found.
func (f *specTrial) leaf(t *testing.T, path string, verdict supported.Verdict) {
	t.Helper()
	switch {
	case !f.seen[path]:
		t.Errorf("%s: no object of testdata/supported/specs has %s", f.kind, path)
	case (verdict == supported.Yes || verdict == supported.ByHub) && !f.works[path]:
		t.Errorf("%s: %s is listed as supported, but another value changes nothing", f.kind, path)
	case verdict == supported.Text && f.works[path]:
		t.Errorf("%s: %s is listed as a text for people, but it has an effect", f.kind, path)
	case verdict == supported.No && !f.told[path]:
		t.Errorf("%s: %s is listed as not supported, but no finding says so", f.kind, path)
	}
}

func (f *specTrial) leaves(fields []schema.Field, at string, each func(path string)) {
	for _, field := range fields {
		path := strings.TrimPrefix(at+"."+field.Name, ".")
		if len(field.Below) == 0 {
			each(path)
		}
		f.leaves(field.Below, path, each)
	}
}

// object tries the fields of one object. At first it only collects their values: those of one object are
// candidates for another.
func (f *specTrial) object(t *testing.T, s *federationtest.Scenario, o *config.Object, collect bool) {
	t.Helper()
	whole := f.admitted(o.Manifest)
	if whole == nil {
		t.Fatalf("%s: %s is not valid", s.Name, o.Key)
	}
	spec, _ := whole["spec"].(map[string]any)
	if collect {
		eachValue(f.fields, spec, "", func(path string, value any, _ func(any)) {
			f.seen[path] = true
			name := path[strings.LastIndex(path, ".")+1:]
			if _, isText := value.(string); isText && !slices.Contains(f.values[name], value) {
				f.values[name] = append(f.values[name], value)
			}
		})
		return
	}
	f.pieces = piecesOf(func(yield func(string) bool) {
		for _, proxy := range s.Proxies {
			if !yield(proxy.Name) {
				return
			}
		}
	})
	before := effects(t, s, o.Key)
	for field := range before.found {
		f.told[field] = true
	}
	eachValue(f.fields, spec, "", func(path string, value any, put func(any)) {
		f.told[path] = f.told[path] || isBelow(path, slices.Collect(maps.Keys(before.found)))
		if !f.matters[path] || f.works[path] {
			return
		}
		var refused []any
		for _, other := range f.others(path, value) {
			put(other)
			switch {
			case f.works[path]:
			case f.admitted(manifestOf(t, whole)) == nil:
				refused = append(refused, other)
			default:
				f.works[path] = f.changes(t, s, o, whole, before)
			}
		}
		// The schema ties some values to other fields: any other one would do.
		for _, other := range refused {
			put(other)
			if !f.works[path] && other != (none{}) && len(refused) == len(f.others(path, value)) {
				f.works[path] = f.changes(t, s, o, whole, before)
			}
		}
		put(value)
	})
	s.Configure(o)
}

func manifestOf(t *testing.T, value map[string]any) []byte {
	t.Helper()
	manifest, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return manifest
}

// changes reports whether the object, as it is changed, has another effect.
func (f *specTrial) changes(t *testing.T, s *federationtest.Scenario, o *config.Object, value map[string]any, before effect) bool {
	t.Helper()
	changed := *o
	changed.Manifest = manifestOf(t, value)
	s.Configure(&changed)
	after := effects(t, s, o.Key)
	return after.text != before.text || f.pieces.differ(before.resources, after.resources)
}

// admitted is the object with its defaults; nil: a cluster would refuse it.
func (f *specTrial) admitted(manifest []byte) map[string]any {
	var in map[string]any
	if utiljson.Unmarshal(manifest, &in) != nil {
		return nil
	}
	value, problems := f.set.Admit(in, nil)
	if len(problems) > 0 {
		return nil
	}
	return value
}

// none is what lacks a field.
type none struct{}

// others are other values for a field, some of which its schema may refuse.
func (f *specTrial) others(path string, value any) []any {
	all := []any{none{}}
	switch v := value.(type) {
	case bool:
		all = append(all, !v)
	case string:
		all = append(all, v+"x", "x"+v, "1"+v)
		for _, other := range f.values[path[strings.LastIndex(path, ".")+1:]] {
			if other != value {
				all = append(all, other)
			}
		}
	case int64:
		all = append(all, v+1, v-1)
	case []any:
		all = append(all, v[:len(v)-1])
		if last, isText := v[len(v)-1].(string); isText {
			all = append(all, append(slices.Clone(v[:len(v)-1]), last+"x"))
		}
	case map[string]any:
		for key, value := range v {
			for _, other := range f.others(path, value) {
				changed := maps.Clone(v)
				changed[key] = other
				all = append(all, changed)
			}
		}
	}
	return all
}

// eachValue calls try with the path of each value that the spec has, and with what puts another one in
// its place.
func eachValue(fields []schema.Field, spec map[string]any, at string, try func(path string, value any, put func(any))) {
	for _, field := range fields {
		path := strings.TrimPrefix(at+"."+field.Name, ".")
		value, has := spec[field.Name]
		items, isList := value.([]any)
		switch {
		case !has:
		case len(field.Below) == 0:
			try(path, value, func(other any) {
				if other == (none{}) {
					delete(spec, field.Name)
				} else {
					spec[field.Name] = other
				}
			})
		case !isList:
			eachValue(field.Below, value.(map[string]any), path, try)
		}
		for _, item := range items {
			if len(field.Below) > 0 {
				eachValue(field.Below, item.(map[string]any), path, try)
			}
		}
	}
}

// effect is what follows from an object.
type effect struct {
	text      string                        // what is derived and found
	resources func(piece) map[string]string // what proxies get
	found     map[string]bool               // paths of the spec of which findings say that they have no effect
}

var indexes = regexp.MustCompile(`\[[^]]*\]`)

// effects are those of the present step with the object.
func effects(t *testing.T, s *federationtest.Scenario, of federation.ObjectKey) effect {
	t.Helper()
	at := s.Snapshot()
	e := effect{resources: resourcesOf(t, s, at), found: map[string]bool{}}
	var text strings.Builder
	text.Write(federationtest.Render(t, at))
	fmt.Fprintln(&text, federation.DrainsIn(at))
	for o := range s.Config.Objects() {
		if o.Key != of {
			fmt.Fprintln(&text, o.Key, o.Credentials, string(o.Manifest))
		}
	}
	find := func(code, object, field string) {
		fmt.Fprintln(&text, code, object, field)
		path, inSpec := strings.CutPrefix(field, "spec.")
		if inSpec && slices.Contains([]string{"NOT_HONOURED", "NO_EFFECT", "UNSUPPORTED_VALUE"}, code) {
			e.found[indexes.ReplaceAllString(path, "")] = true
		}
	}
	for p := range at.Problems("hub") {
		if p.Object == of.String() || p.Object == of.Title() {
			find(p.Code, p.Object, p.Field)
		}
	}
	for _, finding := range apply.References(at.Read(), of) {
		find(finding.Code, of.String(), finding.Field)
	}
	e.text = text.String()
	return e
}

// resourcesOf is what the proxies of the scenario get from a snapshot.
func resourcesOf(t *testing.T, s *federationtest.Scenario, of *federation.Snapshot) func(piece) map[string]string {
	t.Helper()
	nodes := map[string]envoy.Node{}
	for _, proxy := range s.Proxies {
		nodes[proxy.Name] = nodeOf(t, proxy)
	}
	return remembered(func(p piece) map[string]string {
		got := map[string]string{}
		for _, r := range build(t, p.typ, nodes[p.proxy], of) {
			got[r.name] = string(marshal(t, r.message))
		}
		return got
	})
}
