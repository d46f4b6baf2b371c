package proxy

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rtls"
)

// Defaults of a Check's fields.
const (
	DefaultCheckInterval = 2 * time.Second
	DefaultCheckTimeout  = 2 * time.Second
	DefaultRise          = 2
	DefaultFall          = 3
)

// A CheckKind is how a Check asks a target.
type CheckKind uint8

const (
	// NoCheck: targets are not checked.
	NoCheck CheckKind = iota
	// CheckTCP: the target accepts a connection.
	CheckTCP
	// CheckTLS: the target also completes a TLS handshake, by Pool.TLS; without that, its
	// certificate is not verified.
	CheckTLS
	// CheckHTTP: the target answers a GET request with status 200 to 399, or with
	// Check.Status.
	CheckHTTP
	// CheckRedis: the target answers PING with PONG, or demands a password.
	CheckRedis
)

// A Check tells which targets of a Pool can serve. The zero Check checks nothing. A target
// counts as able until its first check has ended. That one decides alone; later ones by Rise
// and Fall. A target that cannot serve gets no clients, and keeps those that it has.
type Check struct {
	Kind CheckKind
	// Interval is the time between the end of a check and the next check. 0:
	// DefaultCheckInterval.
	Interval time.Duration
	// Timeout is how long a check may take. 0: DefaultCheckTimeout.
	Timeout time.Duration
	// Rise is how many checks in a row must succeed until a target that could not serve can,
	// Fall how many must fail until it cannot. 0: DefaultRise, DefaultFall.
	Rise, Fall int
	// Path and Host are of CheckHTTP's request. "": "/", and the target's address.
	Path, Host string
	// Status is the status that CheckHTTP wants. 0: 200 to 399.
	Status int
}

func (c *Check) check() error {
	switch {
	case c.Kind > CheckRedis:
		return fmt.Errorf("Check.Kind is %d: want NoCheck to CheckRedis", c.Kind)
	case c.Interval < 0:
		return fmt.Errorf("Check.Interval is %v: want 0, for the default, or more", c.Interval)
	case c.Timeout < 0:
		return fmt.Errorf("Check.Timeout is %v: want 0, for the default, or more", c.Timeout)
	case c.Rise < 0:
		return fmt.Errorf("Check.Rise is %d: want 0, for the default, or more", c.Rise)
	case c.Fall < 0:
		return fmt.Errorf("Check.Fall is %d: want 0, for the default, or more", c.Fall)
	case c.Path != "" && c.Path[0] != '/' || strings.ContainsFunc(c.Path, isNoField):
		return fmt.Errorf("Check.Path is %q: want a path that begins with a slash, and has neither spaces nor control characters", c.Path)
	case strings.ContainsFunc(c.Host, isNoField):
		return fmt.Errorf("Check.Host is %q: want a name without spaces and control characters", c.Host)
	case c.Status != 0 && (c.Status < 100 || c.Status > 999):
		return fmt.Errorf("Check.Status is %d: want 0, for 200 to 399, or a status", c.Status)
	}
	return nil
}

func isNoField(r rune) bool { return r <= ' ' || r == 0x7f }

// A checker checks a target again and again, on one loop.
type checker struct {
	target  *target
	loop    *rondo.Loop
	timer   *rondo.Timer
	check   Check // that the last check was, or is
	running bool
	known   bool // a check has ended
	row     int  // checks in a row that contradict the target's state
}

// start begins to check, if the pool wants that and checks are not under way. It is posted
// after each Apply. Another Check does not wait until the old one's Interval has passed.
func (k *checker) start() {
	if k.running {
		m := k.target.member.Load()
		if m == nil || m.group.Check == k.check || k.timer == nil || !k.timer.Stop() {
			return
		}
	}
	k.running = true
	k.next()
}

// next begins a check.
func (k *checker) next() {
	t := k.target
	m := t.member.Load()
	if m == nil || m.group.Check.Kind == NoCheck || t.pool.server.ended.Load() {
		k.running, k.known, k.row = false, false, 0
		t.down.Store(false)
		return
	}
	k.check = m.group.Check
	p := &probe{checker: k, check: &m.group.Check}
	p.late = k.loop.AfterFunc(orDefault(p.check.Timeout, DefaultCheckTimeout), p.timeout)
	p.dialing = k.loop.Dial(m.settings.Network, m.address, m.settings.Socket, rondo.FilteredDial(p.connected, m.checkFilters()...))
}

// checkFilters are the filters of a check's connection.
func (m *member) checkFilters() []rondo.FilterOpenFunc {
	all := m.filters(nil)
	if m.group.Check.Kind == CheckTLS && m.secure == nil {
		all = append(all, rtls.Client(&tls.Config{InsecureSkipVerify: true, ServerName: m.settings.host()}))
	}
	return all
}

// ended notes the result of a check.
func (k *checker) ended(err error) {
	t := k.target
	m := t.member.Load()
	if m == nil || m.group.Check.Kind == NoCheck {
		k.next() // nobody wants the result any more
		return
	}
	c := &m.group.Check
	if isOurs(err) {
		k.wait(orDefault(c.Interval, DefaultCheckInterval))
		return
	}
	t.checks.Add(1)
	text := ""
	if err != nil {
		t.checksFailed.Add(1)
		text = err.Error()
	}
	t.checkError.Store(&text)
	isDown := err != nil
	if isDown == t.down.Load() {
		k.row = 0
	} else {
		k.row++
		need := orDefault(c.Rise, DefaultRise)
		if isDown {
			need = orDefault(c.Fall, DefaultFall)
		}
		if k.row >= need || !k.known {
			k.row = 0
			t.turn(isDown, err)
		}
	}
	wait := orDefault(c.Interval, DefaultCheckInterval)
	if !k.known { // so that targets are not checked all at the same time from now on
		wait = wait/2 + time.Duration(t.hash%1000)*wait/2000
	}
	k.known = true
	k.wait(wait)
}

// wait begins the next check after a time.
func (k *checker) wait(d time.Duration) {
	if k.timer == nil {
		k.timer = k.loop.AfterFunc(d, k.next)
	} else {
		k.timer.Reset(d)
	}
}

// turn makes the target able to serve, or not.
func (t *target) turn(down bool, err error) {
	l := t.checker.loop
	if !down && t.down.Load() {
		t.since.Store(t.pool.server.time(l))
	}
	t.down.Store(down)
	log := t.pool.server.log()
	if down {
		log.Warn("proxy: a target is down", "pool", t.pool.name, "target", t.key, "error", err)
	} else {
		log.Info("proxy: a target is up", "pool", t.pool.name, "target", t.key)
		t.pool.serveQueue(l)
	}
}

// A probe is one check, and the Handler of its connection.
type probe struct {
	checker *checker
	check   *Check
	late    *rondo.Timer
	dialing *rondo.Dialing
	conn    *rondo.Conn // nil: not connected, or nothing more to do
	over    bool
}

var errCheckLate = fmt.Errorf("proxy: the check was not done in time: %w", os.ErrDeadlineExceeded)

func (p *probe) timeout() {
	if c := p.conn; c != nil {
		c.Abort(errCheckLate)
	}
	p.end(errCheckLate)
}

// end tells the result, once.
func (p *probe) end(err error) {
	if p.over {
		return
	}
	p.over = true
	p.late.Stop()
	p.dialing.Cancel()
	if p.conn != nil {
		p.conn.Close()
	}
	p.checker.ended(err)
}

// connected is called when the dial and the handshake have ended.
func (p *probe) connected(c *rondo.Conn, err error) rondo.Handler {
	if p.over {
		return nil
	}
	if err != nil {
		p.end(err)
		return nil
	}
	switch p.check.Kind {
	case CheckHTTP:
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: rondo proxy\r\nAccept: */*\r\nConnection: close\r\n\r\n",
			cmp.Or(p.check.Path, "/"), cmp.Or(p.check.Host, p.checker.target.host()))
	case CheckRedis:
		io.WriteString(c, "PING\r\n")
	default:
		p.end(nil)
		return nil // closes c
	}
	p.conn = c
	return p
}

// host is the address for a Host field.
func (t *target) host() string {
	network, address, _ := strings.Cut(t.key, "://")
	if network == "unix" {
		return "localhost"
	}
	return address
}

// longestLine bounds the first line of an answer.
const longestLine = 4 << 10

// Data reads the first line of the answer.
func (p *probe) Data(_ *rondo.Conn, in []byte) (int, error) {
	line, _, complete := bytes.Cut(in, []byte("\n"))
	switch {
	case p.over:
	case complete:
		p.end(p.check.judge(string(bytes.TrimSuffix(line, []byte("\r")))))
	case len(in) > longestLine:
		p.end(fmt.Errorf("proxy: the answer's first line is longer than %d bytes", longestLine))
	default:
		return 0, nil
	}
	return len(in), nil
}

// Closed fails a check that has no answer.
func (p *probe) Closed(_ *rondo.Conn, err error) {
	p.conn = nil
	p.end(cmp.Or(err, io.ErrUnexpectedEOF))
}

var errNoHTTP = errors.New("proxy: the answer is not HTTP's")

// judge returns why an answer does not tell that the target can serve; nil: it does.
func (c *Check) judge(line string) error {
	if c.Kind == CheckRedis {
		if line == "+PONG" || strings.HasPrefix(line, "-NOAUTH") {
			return nil
		}
		return fmt.Errorf("proxy: the answer to PING is %.100q", line)
	}
	version, rest, _ := strings.Cut(line, " ")
	digits, _, _ := strings.Cut(rest, " ")
	if !strings.HasPrefix(version, "HTTP/1.") || len(digits) != 3 || strings.Trim(digits, "0123456789") != "" {
		return fmt.Errorf("%w: %.100q", errNoHTTP, line)
	}
	status := int(digits[0]-'0')*100 + int(digits[1]-'0')*10 + int(digits[2]-'0')
	if status == c.Status || c.Status == 0 && 200 <= status && status < 400 {
		return nil
	}
	return fmt.Errorf("proxy: the status is %d", status)
}
