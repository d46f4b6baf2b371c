package evio

import (
	"container/list"
	"net"
	"net/netip"

	"github.com/rondo-go/rondo"
)

// packetHandler serves an address of a udp scheme.
type packetHandler struct {
	server *server
	index  int
}

// Packet calls Data, and Opened before it if the peer is new. An answer that the system
// does not take is lost.
func (h *packetHandler) Packet(rc *rondo.PacketConn, in []byte, from netip.AddrPort) {
	s := h.server
	// The original passes on empty datagrams only with the -net suffix.
	if s.over || len(in) == 0 && !s.std {
		return
	}
	key := peer{h.index, from}
	id, known := s.peers.find(key)
	var action Action
	if !known {
		id = s.newID()
		if old := s.peers.add(key, id); old != 0 {
			s.closed(old, nil)
		}
		if s.events.Opened != nil {
			var out []byte
			info := Info{AddrIndex: h.index, LocalAddr: rc.LocalAddr(), RemoteAddr: net.UDPAddrFromAddrPort(from)}
			out, _, action = s.events.Opened(id, info)
			s.reply(rc, id, out)
		}
	}
	if action == None && s.events.Data != nil && !s.over {
		var out []byte
		out, action = s.events.Data(id, append([]byte{}, in...))
		s.reply(rc, id, out)
	}
	if action == Close || action == Detach {
		s.peers.remove(key)
		s.closed(id, nil)
	}
	s.after(action)
}

// reply answers the present datagram.
func (s *server) reply(rc *rondo.PacketConn, id int, out []byte) {
	if len(out) == 0 {
		return
	}
	if s.events.Prewrite != nil {
		s.after(s.events.Prewrite(id, len(out)))
	}
	rc.Reply(out)
	if s.events.Postwrite != nil {
		s.after(s.events.Postwrite(id, len(out), 0))
	}
}

func (h *packetHandler) Closed(*rondo.PacketConn, error) { h.server.open.Done() }

// A peer is a sender of datagrams to one of the server's addresses.
type peer struct {
	index int
	addr  netip.AddrPort
}

// maxPeers bounds the peers that have an id.
const maxPeers = 1 << 16

// peers are the ids of peers. The zero peers are none.
type peers struct {
	places map[peer]*list.Element
	order  list.List // of known, the one heard last in front
}

type known struct {
	peer peer
	id   int
}

// find returns the peer's id.
func (p *peers) find(key peer) (id int, ok bool) {
	e := p.places[key]
	if e == nil {
		return 0, false
	}
	p.order.MoveToFront(e)
	return e.Value.(known).id, true
}

// add adds a peer. It returns the id of the one that has to go for it, or 0.
func (p *peers) add(key peer, id int) (old int) {
	if p.places == nil {
		p.places = make(map[peer]*list.Element)
	}
	if len(p.places) == maxPeers {
		last := p.order.Back().Value.(known)
		p.remove(last.peer)
		old = last.id
	}
	p.places[key] = p.order.PushFront(known{key, id})
	return old
}

func (p *peers) remove(key peer) {
	if e := p.places[key]; e != nil {
		p.order.Remove(e)
		delete(p.places, key)
	}
}

// all returns the ids of all peers.
func (p *peers) all() (ids []int) {
	for e := p.order.Front(); e != nil; e = e.Next() {
		ids = append(ids, e.Value.(known).id)
	}
	return ids
}
