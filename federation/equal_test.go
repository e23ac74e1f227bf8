package federation

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"time"
)

// other is a value of the type that differs from its zero value. A type that it
// does not know fails the test: teach it.
func other(t *testing.T, of reflect.Type) reflect.Value {
	t.Helper()
	for _, sample := range []any{
		IPAddress(netip.MustParseAddr("10.0.0.9")), netip.MustParseAddr("10.0.0.9"), netip.MustParsePrefix("10.0.0.9/32"),
		netip.MustParseAddrPort("10.0.0.9:80"), time.Unix(9, 0),
	} {
		if reflect.TypeOf(sample) == of {
			return reflect.ValueOf(sample)
		}
	}
	v := reflect.New(of).Elem()
	if put := v.Addr().MethodByName("Put"); put.IsValid() {
		put.Call([]reflect.Value{other(t, put.Type().In(0)), other(t, put.Type().In(1))})
		return v
	}
	switch of.Kind() {
	case reflect.Interface:
		v.Set(reflect.ValueOf("other"))
	case reflect.Int64:
		v.SetInt(2)
	case reflect.String:
		v.SetString("other")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(2)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(2)
	case reflect.Slice:
		v.Set(reflect.Append(v, other(t, of.Elem())))
	case reflect.Func:
		v.Set(reflect.MakeFunc(of, func([]reflect.Value) []reflect.Value { return []reflect.Value{reflect.Zero(of.Out(0))} }))
	case reflect.Map:
		v.Set(reflect.MakeMap(of))
		v.SetMapIndex(other(t, of.Key()), other(t, of.Elem()))
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
		v.Elem().Set(other(t, of.Elem()))
	case reflect.Struct:
		for i := range of.NumField() {
			v.Field(i).Set(other(t, of.Field(i).Type))
		}
	default:
		t.Fatalf("no other value of %s is known", of)
	}
	return v
}

// eachField calls visit with two values that differ in one field alone: set
// against unset, and, for structs and lists of them, in one field further down.
func eachField[T any](t *testing.T, visit func(field string, a, b T)) {
	t.Helper()
	of := reflect.TypeFor[T]()
	for i := range of.NumField() {
		name, inner := of.Field(i).Name, of.Field(i).Type
		var a, b T
		reflect.ValueOf(&b).Elem().Field(i).Set(other(t, inner))
		visit(name, a, b)
		list := inner.Kind() == reflect.Slice
		if list {
			inner = inner.Elem()
		}
		if inner.Kind() != reflect.Struct || inner.PkgPath() != of.PkgPath() || inner == reflect.TypeFor[Address]() {
			continue
		}
		for j := range inner.NumField() {
			whole, part := reflect.New(inner).Elem(), reflect.New(inner).Elem()
			whole.Set(other(t, inner))
			part.Set(whole)
			part.Field(j).SetZero()
			var a, b T
			for into, v := range map[*T]reflect.Value{&a: whole, &b: part} {
				field := reflect.ValueOf(into).Elem().Field(i)
				if list {
					v = reflect.Append(reflect.MakeSlice(field.Type(), 0, 1), v)
				}
				field.Set(v)
			}
			visit(name+"."+inner.Field(j).Name, a, b)
		}
	}
}

// compared fails for every field that the comparison forgets, but for those that
// it need not know.
func compared[T any](t *testing.T, equal func(a, b *T) bool, except ...string) {
	t.Helper()
	known := map[string]bool{}
	for _, name := range except {
		known[name] = true
	}
	eachField(t, func(field string, a, b T) {
		if known[field] {
			return
		}
		if equal(&a, &b) || equal(&b, &a) {
			t.Errorf("%T: a difference in %s does not show", a, field)
		}
		if !equal(&a, &a) || !equal(&b, &b) {
			t.Errorf("%T: a value with %s differs from itself", a, field)
		}
	})
}

// TestEveryFieldIsCompared: a field that is added to a type and forgotten in its
// comparison would be a change that no reader sees.
func TestEveryFieldIsCompared(t *testing.T) {
	compared(t, func(a, b *Endpoint) bool { return a.Equal(b) })
	compared(t, func(a, b *Shard) bool { return a.Equal(b) })
	compared(t, func(a, b *Workload) bool { return a.Equal(b) })
	compared(t, func(a, b *Selector) bool { return a.Equal(b) })
	compared(t, func(a, b *BoundService) bool { return boundEqual(*a, *b) })
	compared(t, func(a, b *Object) bool { return a.Equal(b) }, "Spec", "Decode") // Digest represents them
	compared(t, func(a, b *Conflict) bool { return conflictsEqual(*a, *b) })
	compared(t, func(a, b *Settings) bool { return a.equal(b) })
	compared(t, func(a, b *Service) bool { return reasonsFor(a, b) == 0 },
		"Key", "SpecVersion", "EndpointsVersion", "AccountsVersion", // its name, and what the comparison decides
		"Key.Hostname", "Key.Namespace")
}

// TestEveryFieldOfAShardIsMerged: every change that a registry reports about a service
// gives a new version with a reason, even if the merge result hardly changes.
func TestEveryFieldOfAShardIsMerged(t *testing.T) {
	k := key("web.shop", "shop")
	eachField(t, func(field string, a, b Shard) {
		s := after(set(shardOf("c1"), map[ServiceKey]*Shard{k: &a}))
		if _, ok := s.Service(k); !ok {
			return // such as a port without a number
		}
		next, changes := Next(s, set(shardOf("c1"), map[ServiceKey]*Shard{k: &b}))
		if next == s || len(changes.Services) != 1 || changes.Services[0].Reasons == 0 {
			t.Errorf("a change of %s makes %+v", field, changes)
		}
	})
}

// TestDepsAreCopiedWhole: Deps are returned as a copy of all that was read.
func TestDepsAreCopiedWhole(t *testing.T) {
	eachField(t, func(field string, _, b Deps) {
		r := &Reader{snapshot: Empty(), deps: b}
		if got := fmt.Sprint(r.Deps()); got != fmt.Sprint(b) {
			t.Errorf("%s: the copy is %s of %s", field, got, fmt.Sprint(b))
		}
	})
}

// TestEveryFieldSurvivesAsJSON: last known good states are kept as JSON.
func TestEveryFieldSurvivesAsJSON(t *testing.T) {
	eachField(t, func(field string, _, b Shard) {
		if field != "Endpoints.Address" { // an endpoint without one is none
			survives(t, field, &b, (*Shard).Equal)
		}
	})
	eachField(t, func(field string, _, b Workload) { survives(t, field, &b, (*Workload).Equal) })
}

func survives[T any](t *testing.T, field string, before *T, equal func(a, b *T) bool) {
	t.Helper()
	text, err := json.Marshal(before)
	after := new(T)
	if err == nil {
		err = json.Unmarshal(text, after)
	}
	if err != nil || !equal(before, after) {
		t.Errorf("%T with %s comes back as %+v (%v)", *before, field, *after, err)
	}
}
