package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/rondo-go/rondo/websocket"
	"github.com/rondo-go/rondo/wsframe"
)

// patience is how long an answer may take on a busy machine.
const patience = 30 * time.Second

func dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: patience}
	return d.DialContext(ctx, "tcp", addr)
}

// http sends requests over a few connections: HTTP/1.1, and HTTP/2 by TLS.
func (l *load) http(ctx context.Context, t *target, i int) {
	secure := &tls.Config{InsecureSkipVerify: true} // the server's certificate is made for the occasion
	transport := &http.Transport{TLSClientConfig: secure, ForceAttemptHTTP2: i%2 == 0, DisableCompression: true}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport, Timeout: patience}
	for range 20 + rand.IntN(100) {
		base := "http://" + t.http
		if i%3 == 0 {
			base = "https://" + t.https
		}
		var err error
		switch rand.IntN(8) {
		case 0:
			err = download(ctx, c, base+"/large", large)
		case 1:
			err = l.breakOff(ctx, c, base+"/large")
		case 2, 3:
			err = upload(ctx, c, base+"/echo", large[:rand.IntN(200_000)])
		default:
			err = download(ctx, c, base+"/hello", []byte("hello"))
		}
		if err != nil {
			l.fail(ctx, "http", err)
			return
		}
		l.rest(ctx)
		if ctx.Err() != nil {
			return
		}
	}
}

func download(ctx context.Context, c *http.Client, url string, want []byte) error {
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return err
	}
	return answered(c, r, want)
}

func upload(ctx context.Context, c *http.Client, url string, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, "POST", url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	return answered(c, r, body)
}

func answered(c *http.Client, r *http.Request, want []byte) error {
	a, err := c.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	got, err := io.ReadAll(a.Body)
	if err != nil {
		return fmt.Errorf("%s: after %d bytes: %w", r.URL.Path, len(got), err)
	}
	if a.StatusCode != http.StatusOK || !bytes.Equal(got, want) {
		return fmt.Errorf("%s: status %d, %d bytes, want %d", r.URL.Path, a.StatusCode, len(got), len(want))
	}
	return nil
}

// breakOff goes away in the middle of an answer.
func (l *load) breakOff(ctx context.Context, c *http.Client, url string) error {
	l.broken.Add(1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return err
	}
	a, err := c.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	_, err = io.ReadFull(a.Body, make([]byte, 1+rand.IntN(100_000)))
	return err
}

// websocket exchanges messages of many sizes, with a handler on the loop or on a goroutine.
func (l *load) websocket(ctx context.Context, t *target, i int) {
	nc, err := dial(ctx, t.http)
	if err != nil {
		l.fail(ctx, "websocket", err)
		return
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	url := "ws://" + t.http + []string{"/socket", "/stream"}[i%2]
	var d websocket.Dialer
	if i%4 < 2 {
		d.Compression = &websocket.Compression{}
	}
	s, _, err := d.OpenStream(ctx, nc, url)
	if err != nil {
		l.fail(ctx, "websocket", err)
		return
	}
	for range 20 + rand.IntN(100) {
		size := rand.IntN(1000)
		if rand.IntN(10) == 0 {
			size = rand.IntN(200_000)
		}
		if err := exchange(ctx, s, large[:size]); err != nil {
			l.fail(ctx, "websocket", err)
			return
		}
		l.rest(ctx)
		if ctx.Err() != nil {
			return
		}
	}
	if rand.IntN(3) == 0 {
		l.broken.Add(1)
		s.CloseNow()
		return
	}
	if err := s.Close(wsframe.CodeNormal, "enough"); err != nil {
		l.fail(ctx, "websocket", err)
	}
}

// exchange sends a message, and reads it at the same time: a dialogue of long messages would wait
// for ever otherwise.
func exchange(ctx context.Context, s *websocket.Stream, p []byte) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	sent := make(chan error, 1)
	go func() { sent <- s.Write(ctx, websocket.Binary, p) }()
	op, got, err := s.Read(ctx)
	if err == nil && (op != websocket.Binary || !bytes.Equal(got, p)) {
		err = fmt.Errorf("%v message of %d bytes, want %d", op, len(got), len(p))
	}
	return errors.Join(err, <-sent)
}

// rude opens connections and leaves them in the middle of something.
func (l *load) rude(ctx context.Context, t *target, i int) {
	addr := []string{t.http, t.https, t.redis}[i%3]
	nc, err := dial(ctx, addr)
	if err != nil {
		l.fail(ctx, "rude", err)
		return
	}
	defer nc.Close()
	l.broken.Add(1)
	texts := map[string][]string{
		t.http:  {"", "GET /lar", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nabc", "GET /large HTTP/1.1\r\nHost: x\r\n\r\n"},
		t.https: {"", "\x16\x03\x01\x02\x00\x01"},
		t.redis: {"", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$100000\r\nabc", "PING\r\n", "*1\r\n$7\r\nCOMMAND\r\n"},
	}[addr]
	io.WriteString(nc, texts[rand.IntN(len(texts))])
	l.rest(ctx)
	if rand.IntN(2) == 0 {
		nc.(*net.TCPConn).SetLinger(0) // a reset
	}
}

// redis sends pipelines of commands, and verifies the replies.
func (l *load) redis(ctx context.Context, t *target, i int) {
	nc, err := dial(ctx, t.redis)
	if err != nil {
		l.fail(ctx, "redis", err)
		return
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	c := &redisClient{nc: nc, r: bufio.NewReader(nc)}
	if i == 0 {
		if err := c.do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru").is("+OK"); err != nil {
			l.fail(ctx, "redis", err)
			return
		}
	}
	for range 20 + rand.IntN(100) {
		nc.SetDeadline(time.Now().Add(patience))
		if err := c.some(fmt.Sprintf("%d:%d", i, rand.IntN(1000))); err != nil {
			l.fail(ctx, "redis", err)
			return
		}
		l.rest(ctx)
		if ctx.Err() != nil {
			return
		}
	}
}

// A redisClient speaks RESP2. Its first error stays.
type redisClient struct {
	nc  net.Conn
	r   *bufio.Reader
	err error
}

// A reply is one that was read: its first line, with the bytes of a bulk string behind it.
type reply struct {
	text string
	err  error
}

// is returns an error unless the reply is one of want.
func (r reply) is(want ...string) error {
	if r.err != nil {
		return r.err
	}
	for _, w := range want {
		if r.text == w || w == "*" && r.text[0] == '*' || w == ":" && r.text[0] == ':' {
			return nil
		}
	}
	return fmt.Errorf("reply %.60q, want %.60q", r.text, want)
}

func (c *redisClient) send(args ...string) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(c.nc, b.String()); err != nil && c.err == nil {
		c.err = err
	}
}

func (c *redisClient) read() reply {
	line, err := c.r.ReadString('\n')
	line = strings.TrimSuffix(line, "\r\n")
	if err == nil {
		err = c.err
	}
	if err != nil {
		return reply{err: err}
	}
	var n int
	switch line[0] {
	case '$':
		if fmt.Sscanf(line, "$%d", &n); n >= 0 {
			p := make([]byte, n+2)
			_, err = io.ReadFull(c.r, p)
			return reply{"$" + string(p[:n]), err}
		}
	case '*':
		fmt.Sscanf(line, "*%d", &n)
		for range n {
			if e := c.read(); e.err != nil {
				return e
			}
		}
	}
	return reply{text: line}
}

func (c *redisClient) do(args ...string) reply {
	c.send(args...)
	return c.read()
}

// some sends a few commands for a key that nobody else has at the same time, unless by chance: what
// others may have done to it is right as well.
func (c *redisClient) some(key string) error {
	value := string(large[:rand.IntN(20_000)])
	switch rand.IntN(6) {
	case 0:
		mine := fmt.Sprintf("mine:%s:%d", key, rand.Int64())
		if err := c.do("SET", mine, value, "EX", "20").is("+OK"); err != nil {
			return err
		}
		return c.do("GET", mine).is("$"+value, "$-1") // it may have been evicted
	case 1:
		const commands = 30
		for range commands {
			c.send("INCR", "number:"+key)
		}
		for range commands {
			if err := c.read().is(":"); err != nil {
				return err
			}
		}
		return nil
	case 2:
		return errors.Join(
			c.do("LPUSH", "list:"+key, value[:len(value)/10], "b", "c").is(":"),
			c.do("LTRIM", "list:"+key, "0", "99").is("+OK"),
			c.do("LRANGE", "list:"+key, "0", "9").is("*"))
	case 3:
		return errors.Join(
			c.do("ZADD", "scores:"+key, "1", "a", "2", value[:len(value)/100]).is(":"),
			c.do("HSET", "hash:"+key, "field", value[:len(value)/10]).is(":"),
			c.do("XADD", "stream:"+key, "MAXLEN", "100", "*", "f", "v").isString())
	case 4:
		mine := fmt.Sprintf("channel:%s:%d", key, rand.Int64()) // a message of another client would come between
		return errors.Join(
			c.do("SUBSCRIBE", mine).is("*"),
			c.do("UNSUBSCRIBE", mine).is("*"),
			c.do("PUBLISH", mine, value).is(":"))
	}
	return errors.Join(c.do("SET", "junk:"+key, value).is("+OK"), c.do("DEL", "list:"+key, "stream:"+key).is(":"))
}

// isString returns an error unless the reply is a bulk string.
func (r reply) isString() error {
	if r.err == nil && r.text[0] != '$' {
		return fmt.Errorf("reply %.60q, want a string", r.text)
	}
	return r.err
}
