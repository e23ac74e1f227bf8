package envoy

import "isthmus.dev/isthmus/federation"

// HonouredFields are the paths of the table of a kind.
func HonouredFields(kind federation.Kind) []string {
	table, _ := tableOf(kind)
	return table.honoured
}
