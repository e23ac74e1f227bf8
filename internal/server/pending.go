package server

import (
	"container/list"
	"net"
	"net/netip"
)

// pending are the connections of a listener whose callers have sent no request that counts: half-open TLS handshakes,
// half a header, HTTP/2 without a stream. It needs no certificate to open them, so they make room for new connections.
type pending struct {
	bySource map[netip.Prefix]*list.List // of *limitedConn, the oldest first
	at       map[netip.AddrPort]*limitedConn
}

func newPending() *pending {
	return &pending{bySource: map[netip.Prefix]*list.List{}, at: map[netip.AddrPort]*limitedConn{}}
}

// add does nothing for callers of unix sockets, which have no address to know them by again.
func (p *pending) add(c *limitedConn) {
	address, is := c.RemoteAddr().(*net.TCPAddr)
	if !is {
		return
	}
	all := p.bySource[c.from]
	if all == nil {
		all = list.New()
		p.bySource[c.from] = all
	}
	c.entry = all.PushBack(c)
	p.at[address.AddrPort()] = c
}

func (p *pending) removeAt(address netip.AddrPort) {
	if c := p.at[address]; c != nil {
		p.remove(c)
	}
}

func (p *pending) remove(c *limitedConn) {
	if c.entry == nil {
		return
	}
	all := p.bySource[c.from]
	all.Remove(c.entry)
	c.entry = nil
	if all.Len() == 0 {
		delete(p.bySource, c.from)
	}
	if address := c.RemoteAddr().(*net.TCPAddr).AddrPort(); p.at[address] == c {
		delete(p.at, address)
	}
}

// mostCompared bounds what one connection of a flood from very many sources costs.
const mostCompared = 64

// makesRoom returns the connection to close for a new one of the source; nil: there is none. A caller with few
// connections does not suffer from sources with many: it is the oldest of the source that has the most. Age alone would
// let a flood push out every client that needs longer for a handshake than the flood for one round.
func (p *pending) makesRoom(why Refusal, from netip.Prefix) *limitedConn {
	most := p.bySource[from]
	if why != TooManyOfSource {
		compared := 0
		for _, all := range p.bySource {
			if most == nil || all.Len() > most.Len() {
				most = all
			}
			compared++
			if compared == mostCompared {
				break
			}
		}
	}
	if most == nil {
		return nil
	}
	return most.Front().Value.(*limitedConn)
}
