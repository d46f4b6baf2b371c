package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// files serves the files of a directory. What is a file, or a directory's index, it serves
// itself. All else it leaves to an http.FileServer: lists, redirects and errors.
type files struct {
	root               *os.Root
	list               bool // directories without an index
	hidden, compressed bool // serve names that begin with a dot; look for compressed variants
	log                *slog.Logger
	rest               http.Handler
}

func newFiles(root *os.Root, list, hidden, compressed bool, log *slog.Logger) *files {
	f := &files{root: root, list: list, hidden: hidden, compressed: compressed, log: log}
	f.rest = http.FileServer(f)
	return f
}

const indexFile = "index.html"

func (f *files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != "GET" && r.Method != "HEAD" {
		w.Header().Set("Allow", "GET, HEAD")
		fail(w, http.StatusMethodNotAllowed)
		return
	}
	if !f.serve(w, r) {
		f.rest.ServeHTTP(w, r)
	}
}

// serve serves a file. It returns false if the path is not that of a file.
func (f *files) serve(w http.ResponseWriter, r *http.Request) bool {
	name := path.Clean("/" + r.URL.Path)
	switch {
	case strings.HasSuffix(r.URL.Path, "/"+indexFile):
		return false // it is redirected
	case strings.HasSuffix(r.URL.Path, "/"):
		name = path.Join(name, indexFile)
	}
	file, info, err := f.open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	if info.IsDir() {
		return false
	}
	if v := f.variant(w.Header(), r, name, info); v != nil {
		defer v.file.Close()
		v.serve(w, r, name, file)
		return true
	}
	w.Header().Set("ETag", tagOf(info, ""))
	http.ServeContent(w, r, name, info.ModTime(), file)
	return true
}

// tagOf returns the strong ETag of a file in an encoding.
func tagOf(info fs.FileInfo, encoding string) string {
	if encoding != "" {
		encoding = "-" + encoding
	}
	return fmt.Sprintf(`"%x-%x%s"`, info.ModTime().UnixNano(), info.Size(), encoding)
}

// open opens a file or directory. An error that is not fs.ErrNotExist or fs.ErrPermission is
// the system's trouble.
func (f *files) open(name string) (*os.File, fs.FileInfo, error) {
	info, err := f.stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() { // to open a pipe would wait for its writer
		return nil, nil, fs.ErrNotExist
	}
	file, err := f.root.Open(localName(name))
	if err != nil {
		return nil, nil, f.missing(name, err)
	}
	if info, err = file.Stat(); err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// stat describes a file or directory, if it may be served.
func (f *files) stat(name string) (fs.FileInfo, error) {
	if !f.hidden && strings.Contains(name, "/.") {
		return nil, fs.ErrNotExist
	}
	info, err := f.root.Stat(localName(name))
	if err != nil {
		return nil, f.missing(name, err)
	}
	return info, nil
}

// localName returns the system's name of a clean path that begins with a slash.
func localName(name string) string {
	local, err := filepath.Localize(strings.TrimPrefix(name, "/"))
	switch {
	case name == "/":
		return "."
	case err != nil:
		return "\x00" // no file has it
	}
	return local
}

// missing returns fs.ErrNotExist for a name that leads to nothing, or to the outside.
func (f *files) missing(name string, err error) error {
	var errno syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return err
	case !errors.As(err, &errno), errno == syscall.ENOTDIR, errno == syscall.ENAMETOOLONG, errno == syscall.ELOOP, errno == syscall.EINVAL:
		return fs.ErrNotExist
	}
	f.log.Warn("cannot serve a file", "name", name, "error", err)
	return err
}

// Open implements http.FileSystem.
func (f *files) Open(name string) (http.File, error) {
	name = path.Clean("/" + name)
	file, info, err := f.open(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return file, nil
	}
	if !f.list {
		if index, err := f.stat(path.Join(name, indexFile)); err != nil || !index.Mode().IsRegular() {
			file.Close()
			return nil, fs.ErrPermission
		}
	}
	return directory{file, f.hidden}, nil
}

// A directory lists names that begin with a dot only if hidden is set.
type directory struct {
	*os.File
	hidden bool
}

func (d directory) ReadDir(n int) ([]fs.DirEntry, error) {
	all, err := d.File.ReadDir(n)
	return slices.DeleteFunc(all, func(e fs.DirEntry) bool { return d.hides(e.Name()) }), err
}

func (d directory) Readdir(n int) ([]fs.FileInfo, error) {
	all, err := d.File.Readdir(n)
	return slices.DeleteFunc(all, func(i fs.FileInfo) bool { return d.hides(i.Name()) }), err
}

func (d directory) hides(name string) bool { return !d.hidden && strings.HasPrefix(name, ".") }

// encodings lists the encodings that a variant may have, the preferred one first.
var encodings = []struct{ name, suffix string }{{"br", ".br"}, {"gzip", ".gz"}}

// A variant is a file's content in an encoding, in a file beside it.
type variant struct {
	encoding string
	file     *os.File
	info     fs.FileInfo
}

// variant opens the variant that the client prefers; nil: the file itself. It tells caches
// what the choice depends on.
func (f *files) variant(h http.Header, r *http.Request, name string, info fs.FileInfo) *variant {
	if !f.compressed {
		return nil
	}
	var offered []string
	suffixes := make(map[string]string)
	for _, e := range encodings {
		v, err := f.stat(name + e.suffix)
		if err == nil && v.Mode().IsRegular() && !v.ModTime().Before(info.ModTime()) {
			offered = append(offered, e.name)
			suffixes[e.name] = e.suffix
		}
	}
	if len(offered) == 0 {
		return nil
	}
	h.Add("Vary", "Accept-Encoding")
	encoding := preferred(r.Header["Accept-Encoding"], offered)
	if encoding == "" || strings.Contains(r.Header.Get("Range"), ",") { // several ranges come in a frame that is not encoded
		return nil
	}
	file, info, err := f.open(name + suffixes[encoding])
	if err != nil {
		return nil
	}
	return &variant{encoding, file, info}
}

// serve serves the variant of the file of a name.
func (v *variant) serve(w http.ResponseWriter, r *http.Request, name string, file *os.File) {
	h := w.Header()
	h.Set("Content-Type", typeOf(name, file))
	h.Set("Content-Encoding", v.encoding)
	h.Set("ETag", tagOf(v.info, v.encoding))
	http.ServeContent(sized{w, v.info.Size()}, r, name, v.info.ModTime(), v.file)
}

// typeOf returns the Content-Type of a file, which ServeContent would find out by itself if
// there were no encoding.
func typeOf(name string, file io.Reader) string {
	if kind := mime.TypeByExtension(path.Ext(name)); kind != "" {
		return kind
	}
	begin := make([]byte, 512)
	n, _ := io.ReadFull(file, begin) // a file may be shorter
	return http.DetectContentType(begin[:n])
}

// sized announces the length of a whole variant. ServeContent does not if there is a
// Content-Encoding: it is made for handlers that compress what it writes.
type sized struct {
	http.ResponseWriter
	size int64
}

func (s sized) WriteHeader(status int) {
	if status == http.StatusOK {
		s.Header().Set("Content-Length", fmt.Sprint(s.size))
	}
	s.ResponseWriter.WriteHeader(status)
}

// ReadFrom lets the server send the file without a copy.
func (s sized) ReadFrom(r io.Reader) (int64, error) { return io.Copy(s.ResponseWriter, r) }
