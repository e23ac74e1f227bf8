package etcd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// format is the number of the format of every value that is written here.
const format = 1

// A sealed value is a head of a fixed length, "isthmus/0001 DIGEST\n", and a
// payload with that digest.
const (
	sealMark     = "isthmus/"
	digestLength = 2 * sha256.Size
	sealLength   = len(sealMark) + 4 + 1 + digestLength + 1
)

// The reasons for which a value is not used.
var (
	errEmpty   = errors.New("it is empty")
	errForeign = errors.New("isthmus did not write it")
	errNewer   = errors.New("a newer version wrote it")
	errDamaged = errors.New("its checksum is wrong")
)

func digest(texts ...[]byte) string {
	sum := sha256.New()
	for _, t := range texts {
		_, _ = sum.Write(t) // a hash takes everything
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// seal seals what the texts are together.
func seal(texts ...[]byte) string {
	size := sealLength
	for _, t := range texts {
		size += len(t)
	}
	var value strings.Builder
	value.Grow(size)
	_, _ = fmt.Fprintf(&value, "%s%04d %s\n", sealMark, format, digest(texts...))
	for _, t := range texts {
		value.Write(t)
	}
	return value.String()
}

// payload returns what was sealed, a part of value. With errDamaged it returns
// what is there.
func payload(value []byte) ([]byte, error) {
	if len(value) == 0 {
		return nil, errEmpty
	}
	head, marked := strings.CutPrefix(string(value[:min(len(value), sealLength)]), sealMark)
	number, sum, both := strings.Cut(head, " ")
	n, err := strconv.ParseUint(number, 10, 16) // no sign: a value has one way to be written
	switch {
	case !marked || !both || err != nil || n == 0 || len(number) != 4:
		return nil, errForeign
	case n > format:
		return nil, fmt.Errorf("%w: format %d, and this one reads up to %d", errNewer, n, format)
	case len(value) < sealLength:
		return nil, errDamaged
	}
	rest := value[sealLength:]
	if digest(rest)+"\n" != sum {
		return rest, errDamaged
	}
	return rest, nil
}

// sealed is a document in a value of its own.
func sealed(document any) (string, error) {
	data, err := json.Marshal(document)
	return seal(data), err
}

// unseal reads a document that was sealed.
func unseal(value []byte, into any) error {
	data, err := payload(value)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %w", errForeign, err)
	}
	return nil
}
