package httpd

import (
	"context"
	"slices"
	"sync"
)

// A requestContext is the context of a request. It ends when the handler returns or the
// client goes, and has the values of the connection's context, which never ends itself. It
// is a part of the exchange and makes its channel when a handler asks for it: most do not.
type requestContext struct {
	context.Context // the connection's

	mu    sync.Mutex
	err   error
	done  chan struct{}
	after []*func() // to call at the end, on their own goroutines
}

// Done implements context.Context.
func (c *requestContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

// Err implements context.Context.
func (c *requestContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// String names the context in those made from it.
func (c *requestContext) String() string { return "httpd.requestContext" }

// AfterFunc calls f at the end, on a goroutine. Package context looks for this method: with
// it, a context made from this one needs no goroutine that waits.
func (c *requestContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	entry := &f
	c.after = append(c.after, entry)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.Index(c.after, entry)
		if i < 0 {
			return false
		}
		c.after = slices.Delete(c.after, i, i+1)
		return true
	}
}

// cancel ends the context.
func (c *requestContext) cancel() {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = context.Canceled
	if c.done != nil {
		close(c.done)
	}
	after := c.after
	c.after = nil
	c.mu.Unlock()
	for _, f := range after {
		go (*f)()
	}
}
