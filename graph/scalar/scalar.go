// Package scalar writes the scalars of the public contract that GraphQL itself does not
// have. They are used in answers only; arguments are strings.
package scalar

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
)

// dateTime is RFC 3339 with exactly three digits of a second, as the
// specification of the scalar that the schema cites requires.
const dateTime = "2006-01-02T15:04:05.000Z07:00"

// MarshalDateTime writes t in UTC, cut to the millisecond; the zero time is null.
func MarshalDateTime(t time.Time) graphql.Marshaler {
	if t.IsZero() {
		return graphql.Null
	}
	return quoted(t.UTC().Format(dateTime))
}

// UnmarshalDateTime reads RFC 3339.
func UnmarshalDateTime(value any) (time.Time, error) {
	text, ok := value.(string)
	if !ok {
		return time.Time{}, fmt.Errorf("a DateTime is a string, not %T", value)
	}
	return time.Parse(time.RFC3339Nano, text)
}

// MarshalDuration writes d to the millisecond, like 1m30s.
func MarshalDuration(d time.Duration) graphql.Marshaler {
	return quoted(d.Round(time.Millisecond).String())
}

// UnmarshalDuration reads what MarshalDuration writes.
func UnmarshalDuration(value any) (time.Duration, error) {
	text, ok := value.(string)
	if !ok {
		return 0, fmt.Errorf("a Duration is a string, not %T", value)
	}
	return time.ParseDuration(text)
}

func quoted(text string) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.Quote(text)) })
}
