package validation

import (
	"fmt"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation/config/schema"
)

// rule is one rule of a type: a row of the tables in this package. Check says
// what is wrong and what to do, and nothing where the value is good.
type rule[T any] struct {
	field string // below the value; empty: the value as a whole
	code  schema.Code
	check func(T) string
}

// apply checks a value by all rules.
func apply[T any](at path, value T, rules []rule[T]) []Problem {
	var found []Problem
	for _, r := range rules {
		if message := r.check(value); message != "" {
			found = append(found, Problem{Code: r.code, Field: at.field(r.field).String(), Message: message})
		}
	}
	return found
}

// by makes a check of a table.
func by[T any](rules []rule[T]) func(path, T) []Problem {
	return func(at path, value T) []Problem { return apply(at, value, rules) }
}

// each checks the items of a list.
func each[T any](at path, list []T, check func(path, T) []Problem) []Problem {
	if len(list) == 0 {
		return nil
	}
	var found []Problem
	at = at.shared()
	for i, value := range list {
		found = append(found, check(at.item(i).shared(), value)...)
	}
	return found
}

// entries checks the entries of a map in the order of their keys.
func entries[T any](at path, values map[string]T, check func(at path, key string, value T) []Problem) []Problem {
	var found []Problem
	for _, key := range slices.Sorted(maps.Keys(values)) {
		found = append(found, check(at.entry(key), key, values[key])...)
	}
	return found
}

// optional checks what a pointer points to, if it is set.
func optional[T any](at path, value *T, check func(path, *T) []Problem) []Problem {
	if value == nil {
		return nil
	}
	return check(at.shared(), value)
}

// texts checks the texts of a list.
func texts(at path, list []string, check func(string) string) []Problem {
	var found []Problem
	for i, text := range list {
		if message := check(text); message != "" {
			found = append(found, invalid(at.item(i), message)...)
		}
	}
	return found
}

// repeated reports texts that a list has more than once.
func repeated(at path, list []string) []Problem {
	seen := map[string]bool{}
	return each(at, list, func(at path, text string) []Problem {
		again := seen[text]
		seen[text] = true
		return problem(at, schema.DuplicateValue, when(again, "%q is listed twice: remove one", text))
	})
}

// idle turns problems into findings: what is wrong does nothing, and is not a reason to
// refuse the object.
func idle(problems []Problem) []Problem {
	for i := range problems {
		problems[i].Code = NoEffect
	}
	return problems
}

func invalid(at path, message string) []Problem { return problem(at, schema.Invalid, message) }

func problem(at path, code schema.Code, message string) []Problem {
	if message == "" {
		return nil
	}
	return []Problem{{Code: code, Field: at.String(), Message: message}}
}

// when is the message if something is wrong.
func when(wrong bool, format string, args ...any) string {
	if !wrong {
		return ""
	}
	return fmt.Sprintf(format, args...)
}
