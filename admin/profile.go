package admin

import (
	"context"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The paths below /debug/pprof/ are the same as in net/http/pprof, because go tool pprof asks for
// them. That package itself is not used: whoever imports it gives these paths to all users of
// http.DefaultServeMux, and it shows the command line, which may have passwords in it.

// maxSeconds is the longest profile.
const maxSeconds = 300

var profileIndex = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Profiles</title>
<h1>Profiles</h1>
<ul>
<li><a href="profile?seconds=10">profile</a>: where the processors' time goes, for ten seconds
<li><a href="trace?seconds=1">trace</a>: what the scheduler does, for a second, for go tool trace
{{range .}}<li><a href="{{.Name}}?debug=1">{{.Name}}</a>: {{.Count}}
{{end}}<li><a href="goroutine?debug=2">all stacks</a>
</ul>
</html>
`))

func (p *Page) serveProfiles(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.URL.Path, "/debug/pprof/")
	switch {
	case !ok:
		http.NotFound(w, r)
	case name == "":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		profileIndex.Execute(w, slices.DeleteFunc(pprof.Profiles(), func(p *pprof.Profile) bool { return strings.Contains(p.Name(), "/") }))
	case name == "profile":
		record(w, r, 30, pprof.StartCPUProfile, pprof.StopCPUProfile)
	case name == "trace":
		record(w, r, 1, trace.Start, trace.Stop)
	default:
		writeProfile(w, r, name)
	}
}

// writeProfile answers with a profile of what has been so far.
func writeProfile(w http.ResponseWriter, r *http.Request, name string) {
	profile := pprof.Lookup(name)
	debug, err := strconv.Atoi(r.FormValue("debug"))
	switch {
	case profile == nil:
		http.NotFound(w, r)
		return
	case r.FormValue("debug") != "" && err != nil:
		http.Error(w, "debug must be a number", http.StatusBadRequest)
		return
	case r.FormValue("seconds") != "":
		http.Error(w, "only profile and trace take seconds", http.StatusBadRequest)
		return
	}
	if debug == 0 {
		asFile(w, name)
	} else {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	if r.Method == http.MethodGet {
		profile.WriteTo(w, debug)
	}
}

// asFile says that the answer is a file.
func asFile(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
}

// record answers with what is recorded for some seconds. One client at a time can have it.
func record(w http.ResponseWriter, r *http.Request, usual int, start func(io.Writer) error, stop func()) {
	seconds := usual
	if text := r.FormValue("seconds"); text != "" {
		var err error
		if seconds, err = strconv.Atoi(text); err != nil || seconds < 1 || seconds > maxSeconds {
			http.Error(w, fmt.Sprintf("seconds must be a number from 1 to %d", maxSeconds), http.StatusBadRequest)
			return
		}
	}
	if r.Method == http.MethodHead {
		asFile(w, "profile")
		return
	}
	d := time.Duration(seconds) * time.Second
	ctx, cancel := context.WithTimeout(r.Context(), d)
	defer cancel()
	to := &recipient{to: w, control: http.NewResponseController(w), end: time.Now().Add(d + sendTime), gone: cancel}
	to.control.SetWriteDeadline(to.end) // an error: the server has no deadlines
	asFile(w, "profile")
	if err := start(to); err != nil {
		w.Header().Del("Content-Disposition")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	<-ctx.Done()
	stop()
}

// A recipient is a client that gets a recording. Go keeps what a trace has recorded until that
// is written, without a bound: so the recording ends if the client does not take it.
type recipient struct {
	to      io.Writer
	control *http.ResponseController
	end     time.Time // the answer's deadline
	gone    func()    // ends the recording
}

// Write writes a part of the recording, for which the client has sendTime.
func (r *recipient) Write(b []byte) (int, error) {
	r.control.SetWriteDeadline(time.Now().Add(sendTime))
	n, err := r.to.Write(b)
	if err != nil {
		r.gone()
	}
	r.control.SetWriteDeadline(r.end) // the next part may be long in coming
	return n, err
}
