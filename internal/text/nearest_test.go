package text_test

import (
	"strings"
	"testing"

	"isthmus.dev/isthmus/internal/text"
)

func TestNearestIsWhatWasLikelyMeant(t *testing.T) {
	kinds := []string{"Gateway", "ServiceEntry", "Sidecar", "VirtualService"}
	for word, want := range map[string]string{
		"gatway": "Gateway", "Sidecra": "Sidecar", "ServiceEntries": "ServiceEntry", "VirtualServices": "VirtualService",
		"Pod": "", "": "", strings.Repeat("Gateway", 100): "",
	} {
		if got := text.Nearest(word, kinds); got != want {
			t.Errorf("%q is taken for %q, want %q", word, got, want)
		}
	}
}
