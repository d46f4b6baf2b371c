// Command pack turns the programs that .ci/release has built into the files of a release: for
// each platform an archive and an SBOM, and the checksums of all. The same programs give the
// same bytes: times are the commit's, and names are sorted.
package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A release is what the flags say.
type release struct {
	version string
	time    time.Time // of the commit
	source  string    // a directory with the module and its licence
	build   string    // a directory with the programs, as in linux-amd64/rondo
	extra   string    // a directory with files for all platforms; "": none
	out     string    // a directory for the results
}

// A file of an archive.
type file struct {
	name    string
	mode    fs.FileMode
	content []byte
}

func main() {
	var r release
	var seconds int64
	flag.StringVar(&r.version, "version", "", "version, as in v1.2.3")
	flag.Int64Var(&seconds, "time", 0, "the commit's time, in seconds since 1970")
	flag.StringVar(&r.source, "source", ".", "directory with the module")
	flag.StringVar(&r.build, "build", "", "directory with the programs, as in linux-amd64/rondo")
	flag.StringVar(&r.extra, "extra", "", "directory with files for all archives")
	flag.StringVar(&r.out, "out", "", "directory for the results")
	flag.Parse()
	r.time = time.Unix(seconds, 0).UTC()
	if err := r.pack(); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

// pack writes all files of the release.
func (r *release) pack() error {
	platforms, err := os.ReadDir(r.build)
	if err != nil {
		return err
	}
	common, err := r.common()
	if err != nil {
		return err
	}
	for _, p := range platforms {
		if err := r.packPlatform(p.Name(), common); err != nil {
			return fmt.Errorf("%s: %w", p.Name(), err)
		}
	}
	return r.checksums()
}

// common returns the files that all archives have.
func (r *release) common() (files []file, err error) {
	for _, name := range []string{"CHANGELOG.md", "LICENSE", "README.md"} {
		content, err := os.ReadFile(filepath.Join(r.source, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, 0o644, content})
	}
	if r.extra == "" {
		return files, nil
	}
	root := os.DirFS(r.extra)
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(root, name)
		files = append(files, file{name, 0o644, content})
		return err
	})
	return files, err
}

// packPlatform writes a platform's archive and SBOM.
func (r *release) packPlatform(platform string, common []file) error {
	program := "rondo"
	if strings.HasPrefix(platform, "windows-") {
		program += ".exe"
	}
	b, err := readBinary(filepath.Join(r.build, platform, program))
	if err != nil {
		return err
	}
	licences, err := b.licences(r.source)
	if err != nil {
		return err
	}
	sbom, err := r.sbom(b)
	if err != nil {
		return err
	}
	name := "rondo-" + r.version + "-" + platform
	files := append(slices.Clone(common), file{program, 0o755, b.content}, file{"LICENSES-OF-OTHERS", 0o644, licences})
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	for i := range files {
		files[i].name = path.Join(name, files[i].name)
	}
	var archive bytes.Buffer
	write, suffix := writeTar, ".tar.gz"
	if strings.HasSuffix(program, ".exe") {
		write, suffix = writeZip, ".zip"
	}
	if err := write(&archive, files, r.time); err != nil {
		return err
	}
	if err := r.write(name+".cdx.json", sbom); err != nil {
		return err
	}
	return r.write(name+suffix, archive.Bytes())
}

func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}

// checksums writes SHA256SUMS, as sha256sum has it.
func (r *release) checksums() error {
	names, err := filepath.Glob(filepath.Join(r.out, "rondo-"+r.version+"-*"))
	if err != nil {
		return err
	}
	slices.Sort(names)
	var sums bytes.Buffer
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), filepath.Base(name))
	}
	return r.write("SHA256SUMS", sums.Bytes())
}
