package schema

import (
	"fmt"
	"sync"
	"testing"
)

// TestSetIsForManyAtOnce: kinds are compiled once, and nobody disturbs another.
func TestSetIsForManyAtOnce(t *testing.T) {
	set := load(t)
	var all sync.WaitGroup
	errs := make(chan error, 16)
	for i := range cap(errs) {
		all.Go(func() {
			wanted := virtualService(t, "", fmt.Sprintf(`{"hosts":["h%d"]}`, i))
			o := ApplyOptions{Manager: fmt.Sprint("m", i), Now: noon}
			r, err := set.Apply(nil, wanted, o)
			if err == nil && r.Object != nil {
				r, err = set.Apply(r.Object, wanted, o)
			}
			if err != nil || r.Object == nil || r.Object["spec"].(map[string]any)["hosts"].([]any)[0] != fmt.Sprint("h", i) {
				errs <- fmt.Errorf("%v %w", r, err)
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}
