package settings

import (
	"testing"
)

func TestDataDirDefaultsToTheStateFolder(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/state")
	t.Setenv("HOME", "/home/ada")
	if got, err := dataDirOf(""); err != nil || got != "/state/isthmus" {
		t.Errorf("with XDG_STATE_HOME it is %q, %v", got, err)
	}
	t.Setenv("XDG_STATE_HOME", "")
	if got, err := dataDirOf(""); err != nil || got != "/home/ada/.local/state/isthmus" {
		t.Errorf("without XDG_STATE_HOME it is %q, %v", got, err)
	}
}
