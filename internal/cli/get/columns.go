package get

import (
	"fmt"
	"slices"
	"strings"

	"isthmus.dev/isthmus/internal/cli/output"
)

// cellOf is what a path leads to, lists joined by commas.
func cellOf(value any, path string) string {
	texts := leaves(value, strings.Split(path, "."))
	const most = 3
	if len(texts) > most {
		texts = append(slices.Clip(texts[:most]), fmt.Sprintf("+%d", len(texts)-most))
	}
	return output.OrDash(strings.Join(texts, ","))
}

func leaves(value any, steps []string) []string {
	if list, ok := value.([]any); ok {
		var all []string
		for _, one := range list {
			all = append(all, leaves(one, steps)...)
		}
		return all
	}
	if len(steps) == 0 {
		if value == nil {
			return nil
		}
		return []string{fmt.Sprint(value)}
	}
	object, _ := value.(map[string]any)
	return leaves(object[strings.TrimSuffix(steps[0], "[]")], steps[1:])
}
