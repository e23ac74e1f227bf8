package etcd

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// Where the configuration is in etcd. Everything below configRoot and
// leasedRoot has one of these forms; docs/adr/0013 says what each is for.
const (
	configRoot      = "/isthmus/v1/config/"
	headKey         = configRoot + "head"
	logPrefix       = configRoot + "log/"
	checkpointsRoot = configRoot + "checkpoint/"
	oncePrefix      = configRoot + "once/"
	txPrefix        = configRoot + "tx/"
	leasedRoot      = "/isthmus/v1/leased/"
	secretRoot      = "/isthmus/v1/secret/" // outside of configRoot: not of its history
)

func logKey(revision int64) string        { return fmt.Sprintf("%s%020d", logPrefix, revision) }
func checkpointKey(revision int64) string { return fmt.Sprintf("%s%020d", checkpointsRoot, revision) }
func onceKey(idempotency string) string   { return oncePrefix + digest([]byte(idempotency)) }
func txFolder(id string) string           { return txPrefix + id + "/" }
func rootKey(id string) string            { return txFolder(id) + "root" }
func indexFolder(id string) string        { return txFolder(id) + "index/" }
func valueFolder(id string) string        { return txFolder(id) + "value/" }

func partKey(folder string, n int) string { return fmt.Sprintf("%s%06d", folder, n) }

var errKey = errors.New("no key that isthmus writes")

// numbered reads the revision at the end of a key.
func numbered(key, prefix string) (int64, error) {
	digits, found := strings.CutPrefix(key, prefix)
	n, err := strconv.ParseInt(digits, 10, 64)
	if !found || err != nil || n < 0 || fmt.Sprintf("%020d", n) != digits {
		return 0, errKey
	}
	return n, nil
}

// transaction reads the id in the key of a staged value.
func transaction(key string) (string, error) {
	rest, found := strings.CutPrefix(key, txPrefix)
	id, rest, more := strings.Cut(rest, "/")
	if !found || !more || id == "" || strings.ContainsFunc(id, notID) {
		return "", errKey
	}
	if rest == "root" {
		return id, nil
	}
	folder, digits, more := strings.Cut(rest, "/")
	n, err := strconv.ParseUint(digits, 10, 31)
	if !more || err != nil || folder != "index" && folder != "value" || fmt.Sprintf("%06d", n) != digits {
		return "", errKey
	}
	return id, nil
}

func notID(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') }

// known reports whether a key below configRoot is one of ours.
func known(key string) bool {
	var err error
	switch {
	case key == headKey:
	case strings.HasPrefix(key, logPrefix):
		_, err = numbered(key, logPrefix)
	case strings.HasPrefix(key, checkpointsRoot):
		_, err = numbered(key, checkpointsRoot)
	case strings.HasPrefix(key, oncePrefix):
		rest := strings.TrimPrefix(key, oncePrefix)
		return len(rest) == digestLength && strings.Trim(rest, "0123456789abcdef") == ""
	default:
		_, err = transaction(key)
	}
	return err == nil
}

// noNamespace replaces an empty namespace in a key; no namespace has that name.
const noNamespace = "_"

func leasedKey(k federation.ObjectKey) string { return leasedRoot + pathOf(k) }

func secretKey(k federation.ObjectKey) string { return secretRoot + pathOf(k) }

func pathOf(k federation.ObjectKey) string {
	namespace := url.PathEscape(k.Namespace)
	if k.Namespace == "" {
		namespace = noNamespace
	}
	return url.PathEscape(k.Of().String()) + "/" + namespace + "/" + url.PathEscape(k.Name)
}

func readLeasedKey(key string) (federation.ObjectKey, error) { return readPath(key, leasedRoot) }

func readPath(key, root string) (federation.ObjectKey, error) {
	rest, found := strings.CutPrefix(key, root)
	parts := strings.Split(rest, "/")
	if !found || len(parts) != 3 {
		return federation.ObjectKey{}, errKey
	}
	for i := range parts {
		var err error
		parts[i], err = url.PathUnescape(parts[i])
		if err != nil {
			return federation.ObjectKey{}, errKey
		}
	}
	if parts[1] == noNamespace {
		parts[1] = ""
	}
	kind, group, _ := strings.Cut(parts[0], ".")
	k := federation.ObjectKey{Group: group, Kind: kind, Namespace: parts[1], Name: parts[2]}
	if kind == "" || k.Name == "" || root+pathOf(k) != key {
		return federation.ObjectKey{}, errKey
	}
	return k, nil
}
