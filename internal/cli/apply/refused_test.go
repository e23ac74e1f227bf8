package apply

import (
	"strings"
	"testing"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

func TestRefusalsEndWithWhatToDo(t *testing.T) {
	reused := client.UserError{Code: "IDEMPOTENCY_KEY_REUSED", Message: "another request with this key became revision 7"}
	field, silent := "spec.hosst", "UNAVAILABLE"
	for _, of := range []struct {
		reasons []client.UserError
		says    []string
		not     string
	}{
		{[]client.UserError{reused}, []string{"1 problem, nothing was changed", "repeat with a new one"}, "isthmus validate"},
		{[]client.UserError{reused, {Code: "TAB"}}, []string{"2 problems"}, "isthmus validate"},
		{[]client.UserError{{Code: silent}}, []string{"configSources", "isthmus history"}, "nothing was changed"},
		{
			[]client.UserError{{Code: "UNKNOWN_FIELD", Field: &field, Message: `unknown field "spec.hosst": did you mean "host"?`}},
			[]string{"isthmus validate"},
			"spec.hosst: ",
		},
	} {
		var told strings.Builder
		err := refused(cmdutil.Streams{Err: &told}, of.reasons)
		all := told.String() + err.Error()
		for _, want := range of.says {
			if !strings.Contains(all, want) {
				t.Errorf("%v is reported as %q, without %q", of.reasons, all, want)
			}
		}
		if strings.Contains(all, of.not) {
			t.Errorf("%v is reported as %q, with %q", of.reasons, all, of.not)
		}
	}
}
