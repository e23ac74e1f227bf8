package etcd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// The layout of bbolt's files: pages with a head of 16 bytes, of which the first
// two name the root of a tree of buckets.
const (
	pageHead    = 16
	elementSize = 16
	bucketHead  = 16
	metaSize    = 64
	metaMagic   = 0xED0CDAED
	branchPage  = 0x01
	leafPage    = 0x02
	bucketLeaf  = 0x01
	maxDepth    = 64
	maxPageSize = 64 << 10
	maxFile     = 1 << 40
	// No page is larger than a value of etcd's with room to spare.
	maxOverflow = 64 << 20
)

// pages looks through a file of bbolt's. bbolt itself ends the process over some
// damage, and does not look for other.
type pages struct {
	file io.ReaderAt
	size int64           // of a page
	end  uint64          // number of pages
	seen map[uint64]bool // pages that the tree has reached
}

// checkPages checks that the tree of a bbolt file is whole: every page of it is
// there once, is what its parent says, and has its keys in order.
func checkPages(file io.ReaderAt) error {
	var best []byte
	p := &pages{file: file, seen: map[uint64]bool{}}
	for size := int64(1024); size <= maxPageSize; size *= 2 {
		for _, at := range []int64{0, size} {
			m := readMeta(file, at, size)
			if m != nil && (best == nil || number(m, 48) > number(best, 48)) {
				best, p.size = m, size
			}
		}
	}
	if best == nil {
		return errors.New("both meta pages are damaged")
	}
	p.end = number(best, 40)
	if _, err := file.ReadAt(make([]byte, 1), int64(p.end)*p.size-1); err != nil || p.end > maxFile/uint64(p.size) {
		return errors.New("it is cut short")
	}
	return p.walk(number(best, 16), 0)
}

func number(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
func short(b []byte, at int) uint32  { return binary.LittleEndian.Uint32(b[at:]) }

// readMeta returns the page that names the root, or nil.
func readMeta(file io.ReaderAt, at, size int64) []byte {
	m := make([]byte, metaSize)
	if _, err := file.ReadAt(m, at+pageHead); err != nil {
		return nil
	}
	sum := fnv.New64a()
	sum.Write(m[:metaSize-8])
	if short(m, 0) != metaMagic || int64(short(m, 8)) != size || number(m, metaSize-8) != sum.Sum64() {
		return nil
	}
	return m
}

func (p *pages) walk(id uint64, depth int) error {
	page, err := p.read(id)
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	if depth > maxDepth {
		return fmt.Errorf("page %d: the tree has no end", id)
	}
	var kind uint16
	kind, err = kindOf(page)
	if err == nil && kind == branchPage {
		err = p.branch(page, depth)
	} else if err == nil {
		err = p.leaf(page, depth)
	}
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

func (p *pages) read(id uint64) ([]byte, error) {
	if id < 2 || id >= p.end {
		return nil, errors.New("there is no such page")
	}
	head := make([]byte, pageHead)
	if _, err := p.file.ReadAt(head, int64(id)*p.size); err != nil {
		return nil, err
	}
	more := int64(short(head, 12))
	if number(head, 0) != id || more*p.size > maxOverflow || id+uint64(more) >= p.end {
		return nil, errors.New("the page header has another page's number")
	}
	for i := id; i <= id+uint64(more); i++ {
		if p.seen[i] {
			return nil, errors.New("the page occurs twice in the tree")
		}
		p.seen[i] = true
	}
	page := make([]byte, (more+1)*p.size)
	_, err := p.file.ReadAt(page, int64(id)*p.size)
	return page, err
}

func kindOf(page []byte) (uint16, error) {
	kind := binary.LittleEndian.Uint16(page[8:])
	if kind != branchPage && kind != leafPage {
		return 0, fmt.Errorf("its type is %#x", kind)
	}
	return kind, nil
}

// elements calls visit with each element's own bytes and its key, which must
// lie within the page and in order.
func elements(page []byte, size func(element []byte) (at, key, value uint32), visit func(element, key, value []byte) error) error {
	n := int(binary.LittleEndian.Uint16(page[10:]))
	if pageHead+n*elementSize > len(page) {
		return errors.New("it has too many elements")
	}
	var last []byte
	for i := range n {
		from := pageHead + i*elementSize
		element := page[from : from+elementSize]
		at, key, value := size(element)
		begin := uint64(from) + uint64(at)
		end := begin + uint64(key) + uint64(value)
		if end > uint64(len(page)) || begin < uint64(pageHead+n*elementSize) && end > begin {
			return fmt.Errorf("element %d lies outside", i)
		}
		k := page[begin : begin+uint64(key)]
		if i > 0 && bytes.Compare(last, k) >= 0 {
			return fmt.Errorf("element %d is not in order", i)
		}
		last = k
		if err := visit(element, k, page[begin+uint64(key):end]); err != nil {
			return err
		}
	}
	return nil
}

func (p *pages) branch(page []byte, depth int) error {
	if binary.LittleEndian.Uint16(page[10:]) == 0 {
		return errors.New("it has no elements")
	}
	return elements(page, func(e []byte) (at, key, value uint32) { return short(e, 0), short(e, 4), 0 },
		func(element, _, _ []byte) error { return p.walk(number(element, 8), depth+1) })
}

func (p *pages) leaf(page []byte, depth int) error {
	return elements(page, func(e []byte) (at, key, value uint32) { return short(e, 4), short(e, 8), short(e, 12) },
		func(element, _, value []byte) error {
			if short(element, 0)&bucketLeaf == 0 {
				return nil
			}
			return p.bucket(value, depth)
		})
}

// bucket looks into a bucket, which has pages of its own or one within it.
func (p *pages) bucket(value []byte, depth int) error {
	if len(value) < bucketHead || depth > maxDepth {
		return errors.New("a bucket is cut short")
	}
	if root := number(value, 0); root != 0 {
		return p.walk(root, depth+1)
	}
	inline := value[bucketHead:]
	if len(inline) < pageHead || binary.LittleEndian.Uint16(inline[8:]) != leafPage {
		return errors.New("a bucket within it is damaged")
	}
	return p.leaf(inline, depth+1)
}
