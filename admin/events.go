package admin

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/rondo-go/rondo/loopstats"
)

const (
	maxStreams = 16               // event streams
	sendTime   = 10 * time.Second // for a client to take an event
)

// A feed makes updates while streams want them.
type feed struct {
	page    *Page
	every   time.Duration
	mu      sync.Mutex
	streams map[*stream]struct{}
	last    []byte        // the last event; nil: there was none since the first stream came
	stop    chan struct{} // closed when the last stream has gone
}

// A stream is an open page. A client that is slow misses events.
type stream struct{ events chan []byte }

// join adds a stream; nil: there are too many. The first one starts the feed.
func (f *feed) join() *stream {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.streams) == maxStreams {
		return nil
	}
	s := &stream{make(chan []byte, 1)}
	if len(f.streams) == 0 {
		f.streams, f.last, f.stop = make(map[*stream]struct{}), nil, make(chan struct{})
		go f.run(f.stop)
	}
	f.streams[s] = struct{}{}
	if f.last != nil {
		s.events <- f.last
	}
	return s
}

// leave removes a stream. The last one stops the feed.
func (f *feed) leave(s *stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.streams, s)
	if len(f.streams) == 0 {
		close(f.stop)
	}
}

// size returns how many streams there are.
func (f *feed) size() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.streams)
}

// run makes an update at once and after each tick, until stop is closed.
func (f *feed) run(stop <-chan struct{}) {
	ticker := time.NewTicker(f.every)
	defer ticker.Stop()
	var m measuring
	defer m.stop()
	var before []loopstats.Loop
	for {
		m.begin(f.page)
		u, now := f.page.update(before)
		before = now
		if text, err := json.Marshal(u); err == nil { // it always is
			f.send(stop, []byte("data: "+string(text)+"\n\n"))
		}
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
	}
}

// send gives all streams an event, in place of one that they have not taken.
func (f *feed) send(stop <-chan struct{}, event []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-stop: // other streams have a feed of their own
		return
	default:
	}
	f.last = event
	for s := range f.streams {
		select {
		case <-s.events:
		default:
		}
		s.events <- event
	}
}

// serveEvents sends events until the client goes.
func (p *Page) serveEvents(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	s := p.feed.join()
	if s == nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	defer p.feed.leave(s)
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-s.events:
			control.SetWriteDeadline(time.Now().Add(sendTime)) // an error: the server has no deadlines
			if _, err := w.Write(event); err != nil {
				return
			}
			if control.Flush() != nil {
				return
			}
		}
	}
}
