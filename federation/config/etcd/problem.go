package etcd

import (
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"isthmus.dev/isthmus/federation/config"
)

// The codes of what Trouble says.
const (
	codeUnreachable  = "UNREACHABLE"       // the store does not answer; what is known is shown with its age
	codeMemberDown   = "MEMBER_DOWN"       // a member of the etcd cluster does not answer; others do
	codeUndecodable  = "UNDECODABLE"       // an object's value
	codeChecksum     = "CHECKSUM"          // an object's value was altered
	codeNewerFormat  = "NEWER_FORMAT"      // a newer isthmus wrote it
	codeOtherObject  = "OTHER_OBJECT"      // key and value do not belong together, or the value is not an object
	codeRevision     = "OTHER_REVISION"    // an object's own revision does not fit to its record's
	codeDuplicateUID = "DUPLICATE_UID"     // two objects say that they are the same
	codeUnknownKey   = "UNKNOWN_KEY"       // lies among ours and is not ours
	codeHistory      = "HISTORY_DAMAGED"   // a record is missing or was altered
	codeOtherStore   = "OTHER_STORE"       // not the store that was opened
	codeShadowed     = "SHADOWED"          // a leased object whose key is taken
	codeStorageFull  = "STORAGE_FULL"      // nothing can be written
	codeStorageTight = "STORAGE_NEAR_FULL" // soon
	codeNotWritable  = "STORAGE_NOT_WRITABLE"
)

// codeOfLimit are the codes of what the disk of an embedded store refuses.
var codeOfLimit = map[string]string{limitFull: codeStorageFull, limitNotWritable: codeNotWritable}

func codeOf(err error) string {
	switch {
	case errors.Is(err, errDamaged), errors.Is(err, errHash):
		return codeChecksum
	case errors.Is(err, errRevision):
		return codeRevision
	case errors.Is(err, errNewer):
		return codeNewerFormat
	case errors.Is(err, errEmpty), errors.Is(err, errForeign):
		return codeUndecodable
	}
	return codeOtherObject
}

// damage is a fault of the stored history itself: waiting does not heal it.
type damage struct {
	what string
	why  error
}

func (d *damage) Error() string {
	return fmt.Sprintf("the stored configuration is damaged: %s: %s; restore a backup of the store", d.what, d.why)
}

func (d *damage) Unwrap() error { return d.why }

var (
	errMissing    = errors.New("it is missing")
	errOtherStore = errors.New("this is not the store that was opened")
)

// fault says what an error of etcd's means to the caller.
func fault(doing string, err error) error {
	var broken *damage
	var refused *config.Refused
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpctypes.ErrNoSpace):
		return &config.Refused{Limit: limitFull, Message: "etcd has used up its quota and takes no writes; raise the quota of " +
			"an embedded one with --etcd-quota-bytes; compact and defragment one outside and disarm its alarm, or raise its --quota-backend-bytes"}
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return &config.Refused{
			Limit:   "request size of etcd",
			Message: "etcd accepts no value of this size; raise its --max-request-bytes to 1.5 MiB at least",
		}
	case errors.As(err, &broken), errors.As(err, &refused), errors.Is(err, config.ErrUnavailable):
		return err
	}
	return fmt.Errorf("%s: %w (%w)", doing, config.ErrUnavailable, err)
}
