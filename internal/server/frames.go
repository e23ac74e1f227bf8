package server

import "encoding/binary"

// What is needed of HTTP/2 (RFC 9113, 4.1 and 6).
const (
	clientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	frameHeader   = 9

	dataFrame    = 0
	headersFrame = 1
	resetFrame   = 3

	flagEndStream = 1
	flagPadded    = 8
)

// frames follows the HTTP/2 frames in one direction of a connection.
type frames struct {
	preface int // bytes before the first frame that are still to come
	header  [frameHeader]byte
	have    int // of the header
	left    int // of the payload
}

// frameHandler gets the content of the bytes. Payloads come in pieces.
type frameHandler interface {
	begin(f *frames)
	payload(f *frames, piece []byte)
	end(f *frames)
}

func (f *frames) length() int    { return int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2]) }
func (f *frames) kind() byte     { return f.header[3] }
func (f *frames) stream() uint32 { return binary.BigEndian.Uint32(f.header[5:]) &^ (1 << 31) }

func (f *frames) has(flag byte) bool { return f.header[4]&flag != 0 }

// ends reports whether the frame is the last of its stream in this direction.
func (f *frames) ends() bool {
	return f.kind() == resetFrame || (f.kind() == dataFrame || f.kind() == headersFrame) && f.has(flagEndStream)
}

// scan takes the next bytes of the connection.
func (f *frames) scan(p []byte, h frameHandler) {
	n := min(f.preface, len(p))
	f.preface -= n
	for p = p[n:]; len(p) > 0; p = p[n:] {
		if f.have < frameHeader {
			n = copy(f.header[f.have:], p)
			f.have += n
			if f.have < frameHeader {
				return
			}
			f.left = f.length()
			h.begin(f)
		} else {
			n = min(f.left, len(p))
			h.payload(f, p[:n])
			f.left -= n
		}
		if f.left == 0 {
			h.end(f)
			f.have = 0
		}
	}
}
