package text

import "strings"

// Nearest returns the name that is likely meant, or "".
func Nearest(name string, known []string) string {
	best, least := "", max(2, len(name)/3)+1
	if len(name) > 256 {
		return ""
	}
	for _, k := range known {
		a, b := strings.ToLower(name), strings.ToLower(k)
		d := distance(a, b)
		if len(a) > 3 && strings.HasPrefix(b, a[:4]) {
			d-- // endings are forgotten more easily than beginnings
		}
		if d < least {
			best, least = k, d
		}
	}
	if least >= len(name) {
		return ""
	}
	return best
}

// distance counts the letters to insert, remove, replace or swap with the next.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
