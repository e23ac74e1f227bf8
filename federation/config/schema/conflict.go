package schema

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FieldConflict is a field that an apply would change although another manager
// owns it.
type FieldConflict struct {
	Field           string // as kubectl writes it, such as .spec.ports[number=80].name
	Manager         string // that owns it
	Current, Wanted any    // JSON values; nil: none
}

var managerName = regexp.MustCompile(`^conflict with ("(?:[^"\\]|\\.)*")`)

// conflictsOf takes the library's conflict error apart.
func conflictsOf(err error, live, wanted map[string]any) []FieldConflict {
	status, ok := isConflict(err)
	if !ok || status.Status().Details == nil {
		return nil
	}
	var list []FieldConflict
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		c := FieldConflict{Field: cause.Field, Manager: cause.Message}
		if m := managerName.FindStringSubmatch(cause.Message); m != nil {
			if name, err := strconv.Unquote(m[1]); err == nil {
				c.Manager = name
			}
		}
		c.Current, c.Wanted = lookUp(live, c.Field), lookUp(wanted, c.Field)
		list = append(list, c)
	}
	return list
}

// lookUp finds the value of a path in the notation of kubectl; nil if there is
// none.
func lookUp(value any, at string) any {
	switch {
	case at == "":
		return value
	case strings.HasPrefix(at, "["):
		return lookUpItem(value, at)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	rest := strings.TrimPrefix(at, ".")
	longest := ""
	for name := range object { // names may have dots themselves
		if len(name) >= len(longest) && strings.HasPrefix(rest, name) && ends(rest[len(name):]) {
			longest = name
		}
	}
	if _, ok := object[longest]; !ok {
		return nil
	}
	return lookUp(object[longest], rest[len(longest):])
}

func ends(rest string) bool { return rest == "" || rest[0] == '.' || rest[0] == '[' }

func lookUpItem(value any, at string) any {
	list, ok := value.([]any)
	end := closing(at)
	if !ok || end < 0 {
		return nil
	}
	match, rest := at[1:end], at[end+1:]
	if i, err := strconv.Atoi(match); err == nil {
		if i < 0 || i >= len(list) {
			return nil
		}
		return lookUp(list[i], rest)
	}
	keys := keysOf(match)
	for _, item := range list {
		if isItem(item, keys) {
			return lookUp(item, rest)
		}
	}
	return nil
}

// closing returns the index of the bracket that ends the item, or -1.
func closing(at string) int {
	quoted := false
	for i := 1; i < len(at); i++ {
		switch {
		case at[i] == '\\' && quoted:
			i++
		case at[i] == '"':
			quoted = !quoted
		case at[i] == ']' && !quoted:
			return i
		}
	}
	return -1
}

var itemKey = regexp.MustCompile(`([^=,]*)=("(?:[^"\\]|\\.)*"|[^,]*)`)

// keysOf reads KEY=JSON,… or =JSON.
func keysOf(match string) map[string]string {
	keys := map[string]string{}
	for _, m := range itemKey.FindAllStringSubmatch(match, -1) {
		keys[m[1]] = m[2]
	}
	return keys
}

func isItem(item any, keys map[string]string) bool {
	for name, want := range keys {
		value := item
		if name != "" {
			object, ok := item.(map[string]any)
			if !ok {
				return false
			}
			value = object[name]
		}
		if text, err := json.Marshal(value); err != nil || string(text) != want {
			return false
		}
	}
	return true
}

func printable(r rune) bool { return unicode.IsPrint(r) }
