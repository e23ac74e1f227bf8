package envoyfilter

import (
	"runtime"
	"sync"
	"weak"

	"google.golang.org/protobuf/proto"
)

// A patch that names no resource may be for each of many thousands. Its value is read once, and
// kept for as long as something has the patch, which is never changed.

// valuesRead has what was read of the patches in use, by weak.Pointer[configPatch].
var valuesRead sync.Map //nolint:gochecknoglobals // what a patch says is the same everywhere

type valueRead struct {
	value proto.Message // shared by all who read the patch
	err   error
}

// valueOf is the value of a patch whose applyTo is known, nil for REMOVE. An error means that the
// patch never has an effect.
func valueOf(spec *configPatch) (proto.Message, error) {
	at := weak.Make(spec)
	if known, is := valuesRead.Load(at); is {
		return known.(valueRead).value, known.(valueRead).err
	}
	value, err := readPatch(spec)
	if _, is := valuesRead.LoadOrStore(at, valueRead{value, err}); !is {
		runtime.AddCleanup(spec, func(at weak.Pointer[configPatch]) { valuesRead.Delete(at) }, at)
	}
	return value, err
}

func readPatch(spec *configPatch) (proto.Message, error) {
	j := &job{Patch: Patch{Spec: spec}, subject: subjects[spec.GetApplyTo()], op: spec.GetPatch().GetOperation()}
	if err := j.understood(); err != nil || j.op == remove {
		return nil, err
	}
	value, err := readValue(spec.GetPatch().GetValue(), j.subject.value)
	if err != nil {
		return nil, err
	}
	j.value = value
	return value, j.allowed()
}
