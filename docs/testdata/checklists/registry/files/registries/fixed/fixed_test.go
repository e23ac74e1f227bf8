package fixed

import (
	"testing"

	"isthmus.dev/isthmus/internal/attach"
)

// TestRequestsAttachIt: a request has the section and the credentials, and is looked at.
func TestRequestsAttachIt(t *testing.T) {
	k := Kind()
	kinds := attach.Kinds{Provider: {Access: k.Access, Look: k.Look}}
	for password, refused := range map[string]bool{"": true, "secret": false} {
		r := kinds.Request("a", map[string]any{"fixed": map[string]any{"hostname": "web.example.com", "password": password}})
		if r.Provider != Provider || r.Section["hostname"] != "web.example.com" {
			t.Errorf("the request is %+v", r)
		}
		if found := k.Look(t.Context(), r).Findings; refused != (len(found) == 1) {
			t.Errorf("with the password %q: %+v", password, found)
		}
	}
}
