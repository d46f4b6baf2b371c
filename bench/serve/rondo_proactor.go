package serve

import (
	"context"
	"net"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/proactor"
)

// proactorEcho is gaioEcho on package proactor: for each of loops a queue, a
// loop and a goroutine, and reads into lent memory, so that idle connections
// hold none.
func proactorEcho(address string, loops int) error {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	queues, failed := make([]*proactor.Queue, loops), make(chan error, loops)
	for i := range queues {
		q, err := proactor.New(ofOne.ask(&rondo.Engine{NumLoops: 1}), proactor.Options{})
		if err != nil {
			return err
		}
		queues[i] = q
		go func() { failed <- proactorEchoes(q) }()
	}
	for i := 0; ; i++ {
		select {
		case err := <-failed:
			return err
		default:
		}
		c, err := ln.Accept()
		if err == nil {
			err = queues[i%loops].Read(c, nil, nil)
		}
		if err != nil {
			return err
		}
	}
}

func proactorEchoes(q *proactor.Queue) error {
	for {
		results, err := q.Wait(context.Background())
		if err != nil {
			return err
		}
		for i := range results {
			r := &results[i]
			switch b, _ := r.Value.(*[]byte); {
			case r.Err != nil:
				err = r.Err
			case r.Kind == proactor.Write:
				err = q.Read(r.Conn, nil, b)
			default:
				if b == nil {
					b = new([]byte)
				}
				*b = append((*b)[:0], r.Buf...) // lent until the next Wait
				err = q.Write(r.Conn, *b, b)
			}
			if err != nil {
				q.Free(r.Conn)
			}
		}
	}
}
