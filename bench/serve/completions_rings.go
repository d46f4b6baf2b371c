package serve

import (
	"context"
	"net"

	peer "github.com/xtaci/gaio"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/compat/gaio"
	"github.com/rondo-go/rondo/proactor"
)

// A watcher is gaio's Watcher, or the one of compat/gaio.
type watcher[R any] interface {
	Read(ctx any, conn net.Conn, buf []byte) error
	Write(ctx any, conn net.Conn, buf []byte) error
	WaitIO() ([]R, error)
	Free(net.Conn) error
	Close() error
}

// watcherRing is a ring on a watcher.
type watcherRing[R any] struct {
	watcher watcher[R]
	convert func(*R) done
	got     []done
}

func peerRing(lend int) (ring, error) {
	w, err := peer.NewWatcherSize(lend)
	return &watcherRing[peer.OpResult]{watcher: w, convert: func(r *peer.OpResult) done {
		return done{r.Operation == peer.OpWrite, r.Conn, r.Buffer, r.Size, r.Error}
	}}, err
}

func compatRing(lend int) (ring, error) {
	w, err := gaio.NewWatcherSize(lend)
	return &watcherRing[gaio.OpResult]{watcher: w, convert: func(r *gaio.OpResult) done {
		return done{r.Operation == gaio.OpWrite, r.Conn, r.Buffer, r.Size, r.Error}
	}}, err
}

func (r *watcherRing[R]) read(c net.Conn, buf []byte) error  { return r.watcher.Read(nil, c, buf) }
func (r *watcherRing[R]) write(c net.Conn, buf []byte) error { return r.watcher.Write(nil, c, buf) }
func (r *watcherRing[R]) free(c net.Conn) error              { return r.watcher.Free(c) }
func (r *watcherRing[R]) close() error                       { return r.watcher.Close() }

func (r *watcherRing[R]) wait() ([]done, error) {
	results, err := r.watcher.WaitIO()
	r.got = r.got[:0]
	for i := range results {
		r.got = append(r.got, r.convert(&results[i]))
	}
	return r.got, err
}

// queueRing is a ring on package proactor, with one loop, as gaio's watchers
// have.
type queueRing struct {
	engine *rondo.Engine
	queue  *proactor.Queue
	got    []done
}

func proactorRing(lend int) (ring, error) {
	e := &rondo.Engine{NumLoops: 1}
	q, err := proactor.New(e, proactor.Options{Lend: 3 * lend, Limit: -1})
	return &queueRing{engine: e, queue: q}, err
}

func (r *queueRing) read(c net.Conn, buf []byte) error  { return r.queue.Read(c, buf, nil) }
func (r *queueRing) write(c net.Conn, buf []byte) error { return r.queue.Write(c, buf, nil) }
func (r *queueRing) free(c net.Conn) error              { return r.queue.Free(c) }

func (r *queueRing) close() error {
	r.queue.Close()
	return r.engine.Close()
}

func (r *queueRing) wait() ([]done, error) {
	results, err := r.queue.Wait(context.Background())
	r.got = r.got[:0]
	for i := range results {
		d := &results[i]
		r.got = append(r.got, done{d.Kind == proactor.Write, d.Conn, d.Buf, d.N, d.Err})
	}
	return r.got, err
}
