package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

type pageCommand struct {
	Backend string        `help:"Backend of rondo redis." default:"epoll" placeholder:"NAME"`
	Conns   int           `help:"Connections of the load." default:"5000" placeholder:"N"`
	Sort    string        `help:"Order in which the page lists connections." default:"-age" placeholder:"FIELD"`
	Rows    int           `help:"Rows of that list." default:"200" placeholder:"N"`
	Slice   time.Duration `help:"Time of load with the page open, and without it." default:"4s" placeholder:"TIME"`
	For     time.Duration `help:"Time of the measurement." default:"2m" placeholder:"TIME"`
	Idle    bool          `help:"Compare the closed page with itself: how large is the noise?"`

	flags []string // more of the server's
}

// Help is the end of "bench page --help".
func (*pageCommand) Help() string {
	return `Ratios are open to closed, of rondo redis under GETs: fewer requests and more CPU time are what the page costs. The page is open as in a browser, which reads its events and lists the connections every two seconds, but without a browser's work.`
}

// Run measures what the page of --admin costs while it is open.
func (c *pageCommand) Run(ctx context.Context) error {
	if err := raiseFileLimit(); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "bench-page-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	tools, err := newBuild(work, "..")
	if err != nil {
		return err
	}
	if err := tools.make(ctx, []string{"load", "rondo"}); err != nil {
		return err
	}
	m, err := modeNamed("pinned")
	if err != nil {
		return err
	}
	s, shown, err := c.side(m, tools)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.open(ctx); err != nil {
		return err
	}
	if err := s.touch(); err != nil {
		return err
	}
	if err := c.alone(ctx, s, shown); err != nil {
		return err
	}
	ratios, err := c.alternate(ctx, s, shown)
	if err != nil {
		return err
	}
	for _, of := range []struct{ metric, title string }{{"rate", "requests a second"}, {"cpu", "CPU time of a request"}} {
		r := bootstrapped(ratios[of.metric])
		fmt.Printf("%s, open to closed: %.3f (%.3f–%.3f), %d pairs\n", of.title, r.Median, r.Low, r.High, r.N)
	}
	return nil
}

// side returns a server with a page, and the page's address.
func (c *pageCommand) side(m mode, tools build) (s *side, shown string, err error) {
	w, err := workloadOf("get-p1")
	if err != nil {
		return nil, "", err
	}
	w.conns, w.slice = c.Conns, c.Slice
	srv, err := findServer("rondo-"+c.Backend, w.Family)
	if err != nil {
		return nil, "", err
	}
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	shown = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	plain := srv.command
	srv.command = func(b build, family, address string, loops int) []string {
		return append(append(plain(b, family, address, loops), "--admin", shown), c.flags...)
	}
	return &side{mode: m, workload: w, server: srv, build: tools, tools: tools}, shown, nil
}

// alone tells how much CPU time the page takes while the connections are idle. Other processes change
// that little, and what they leave of the CPUs does not.
func (c *pageCommand) alone(ctx context.Context, s *side, shown string) error {
	spend := func() (float64, error) {
		before, err := cpuTime(s.pid())
		if err != nil {
			return 0, err
		}
		began := time.Now()
		time.Sleep(2 * c.Slice)
		after, err := cpuTime(s.pid())
		return 100 * float64(after-before) / float64(time.Since(began)), err
	}
	closed, err := spend()
	if err != nil {
		return err
	}
	v := &viewer{page: "http://" + shown, sort: c.Sort, rows: c.Rows}
	if err := v.open(ctx); err != nil {
		return err
	}
	open, err := spend()
	if err = errors.Join(err, v.close()); err != nil {
		return err
	}
	fmt.Printf("without load: %.2f %% of a CPU, with the page open %.2f %%: %d events, %d lists\n", closed, open, v.events, v.lists)
	return nil
}

// alternate gives slices with the page closed and open in turn. An open one is compared with the
// mean of its neighbours.
func (c *pageCommand) alternate(ctx context.Context, s *side, shown string) (ratios map[string][]float64, err error) {
	slice := func() (figures, error) {
		x, err := s.slice(ctx, c.Slice, 0)
		return x.figures(), err
	}
	ratios = make(map[string][]float64)
	before, err := slice()
	if err != nil {
		return nil, err
	}
	for begin := time.Now(); time.Since(begin) < c.For && ctx.Err() == nil; {
		v := &viewer{page: "http://" + shown, sort: c.Sort, rows: c.Rows}
		if !c.Idle {
			if err := v.open(ctx); err != nil {
				return nil, err
			}
		}
		open, err := slice()
		if err = errors.Join(err, v.close()); err != nil {
			return nil, err
		}
		after, err := slice()
		if err != nil {
			return nil, err
		}
		same := apart(before["rate"], after["rate"]) <= sameNeighbours && apart(before["cpu"], after["cpu"]) <= sameNeighbours
		fmt.Printf("requests/s %.0f %.0f %.0f, CPU us a request %.3f %.3f %.3f, %d events, %d lists; %t\n",
			before["rate"], open["rate"], after["rate"], before["cpu"], open["cpu"], after["cpu"], v.events, v.lists, same)
		for _, metric := range []string{"rate", "cpu"} {
			if a, b := math.Sqrt(before[metric]*after[metric]), open[metric]; same && a > 0 && b > 0 {
				ratios[metric] = append(ratios[metric], b/a)
			}
		}
		before = after
	}
	if len(ratios["rate"]) == 0 {
		return nil, errRestless
	}
	return ratios, ctx.Err()
}

var errRestless = errors.New("no slice had neighbours of the same speed: the machine is too busy")

// sameNeighbours is how far the slices before and after one with the page open may be apart.
const sameNeighbours = 1.05

// A viewer is an open page: it asks for what page.js asks for.
type viewer struct {
	page, sort    string
	rows          int
	events, lists int

	stop  context.CancelFunc
	ended chan error
}

// open opens the page, and returns when it has shown the first numbers and connections.
func (v *viewer) open(ctx context.Context) error {
	ctx, v.stop = context.WithCancel(ctx)
	v.ended = make(chan error, 1)
	first := make(chan struct{})
	go func() { v.ended <- v.view(ctx, first) }()
	select {
	case <-first:
		return nil
	case err := <-v.ended:
		v.ended <- nil
		return err
	}
}

// close closes the page.
func (v *viewer) close() error {
	if v.stop == nil {
		return nil
	}
	v.stop()
	if err := <-v.ended; !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (v *viewer) view(ctx context.Context, first chan<- struct{}) error {
	var client http.Client
	defer client.CloseIdleConnections()
	ask := func(path string) (io.ReadCloser, error) {
		r, err := http.NewRequestWithContext(ctx, "GET", v.page+path, nil)
		if err != nil {
			return nil, err
		}
		answer, err := client.Do(r)
		if err == nil && answer.StatusCode != http.StatusOK {
			answer.Body.Close()
			err = fmt.Errorf("GET %s: %s", path, answer.Status)
		}
		if err != nil {
			return nil, err
		}
		return answer.Body, nil
	}
	read := func(path string) error {
		body, err := ask(path)
		if err != nil {
			return err
		}
		defer body.Close()
		_, err = io.Copy(io.Discard, body)
		return err
	}
	for _, path := range []string{"/", "/page.css", "/page.js"} {
		if err := read(path); err != nil {
			return err
		}
	}
	stream, err := ask("/events")
	if err != nil {
		return err
	}
	defer stream.Close()
	var listed time.Time
	for lines := bufio.NewReaderSize(stream, 1<<20); ; {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) > 1 { // an event ends with an empty line
			continue
		}
		v.events++
		if time.Since(listed) < 1900*time.Millisecond {
			continue
		}
		listed = time.Now()
		if err := read("/conns?sort=" + url.QueryEscape(v.sort) + "&rows=" + strconv.Itoa(v.rows)); err != nil {
			return err
		}
		if v.lists++; v.lists == 1 {
			close(first)
		}
	}
}
