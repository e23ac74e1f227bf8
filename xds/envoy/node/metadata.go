package node

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
)

// What is kept of a node's metadata for EnvoyFilters that look at it.
const (
	maxShortText  = 256
	maxShortTexts = 8 << 10
)

// between separates texts of metadata; none of them contains it.
const between = "\x00"

// shortTexts are the texts of the metadata that are not too long, as one text: a map of them
// would take a multiple of the memory, for each proxy. Which ones are kept depends on the
// metadata alone.
func shortTexts(metadata map[string]*structpb.Value) string {
	var kept strings.Builder
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		value, isText := metadata[key].GetKind().(*structpb.Value_StringValue)
		if !isText || strings.Contains(key, "=") || strings.Contains(key+value.StringValue, between) ||
			len(key)+len(value.StringValue) > maxShortText {
			continue
		}
		if kept.Len()+maxShortText > maxShortTexts {
			break
		}
		if kept.Len() == 0 {
			kept.WriteString(between)
		}
		kept.WriteString(key + "=" + value.StringValue + between)
	}
	return kept.String()
}

// hasShortText reports whether the texts have the value under the key.
func hasShortText(texts, key, value string) bool {
	return !strings.Contains(key, "=") && strings.Contains(texts, between+key+"="+value+between)
}
