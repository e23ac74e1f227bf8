package fixed

import "testing"

func TestItIsAKindOfRegistry(t *testing.T) {
	if k := Kind(); k.Provider != Provider || k.Open == nil || !k.HasSection {
		t.Errorf("it is %+v", k)
	}
}
