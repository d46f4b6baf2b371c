package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// packed packs this test's binary as a release of two platforms.
func packed(t *testing.T) (out string, program []byte) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put := func(name string, content []byte) {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("build/linux-amd64/rondo", program)
	put("build/windows-arm64/rondo.exe", program)
	put("extra/man/rondo.1", []byte("a page"))
	for _, name := range []string{"CHANGELOG.md", "LICENSE", "README.md"} {
		put("source/"+name, []byte(name))
	}
	for _, name := range []string{"go.mod", "go.sum"} { // for the versions of what is in this binary
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		put("source/"+name, content)
	}
	r := release{
		version: "v1.2.3", time: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC),
		source: filepath.Join(dir, "source"), build: filepath.Join(dir, "build"), extra: filepath.Join(dir, "extra"),
		out: filepath.Join(dir, "out"),
	}
	put("out/else", nil) // a file that is none of the release's
	if err := r.pack(); err != nil {
		t.Fatal(err)
	}
	return r.out, program
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

var files = []string{
	"rondo-v1.2.3-linux-amd64.cdx.json", "rondo-v1.2.3-linux-amd64.tar.gz",
	"rondo-v1.2.3-windows-arm64.cdx.json", "rondo-v1.2.3-windows-arm64.zip",
}

// Two runs give the same bytes, and SHA256SUMS has their checksums.
func TestSameBytes(t *testing.T) {
	one, _ := packed(t)
	other, _ := packed(t)
	var sums string
	for _, name := range files {
		a, b := read(t, one, name), read(t, other, name)
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs", name)
		}
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(a), name)
	}
	if got := string(read(t, one, "SHA256SUMS")); got != sums {
		t.Errorf("SHA256SUMS is\n%s, want\n%s", got, sums)
	}
}

func TestArchives(t *testing.T) {
	out, program := packed(t)
	want := []string{"CHANGELOG.md", "LICENSE", "LICENSES-OF-OTHERS", "README.md", "man/rondo.1", "rondo"}

	var names []string
	unpacked, err := gzip.NewReader(bytes.NewReader(read(t, out, files[1])))
	if err != nil {
		t.Fatal(err)
	}
	for in := tar.NewReader(unpacked); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(h.Name, "rondo-v1.2.3-linux-amd64/")
		names = append(names, name)
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if name == "rondo" && (h.Mode != 0o755 || !bytes.Equal(content, program)) {
			t.Errorf("the program has mode %o and %d bytes", h.Mode, len(content))
		}
		if name == "LICENSES-OF-OTHERS" && (!bytes.Contains(content, []byte("=== Go go")) || !bytes.Contains(content, []byte("=== github.com/CycloneDX/cyclonedx-go v"))) {
			t.Errorf("licences are missing in\n%.1000s", content)
		}
	}
	if !slices.Equal(names, want) {
		t.Errorf("the archive has %q, want %q", names, want)
	}

	zipped := read(t, out, files[3])
	in, err := zip.NewReader(bytes.NewReader(zipped), int64(len(zipped)))
	if err != nil {
		t.Fatal(err)
	}
	names, want[5] = nil, "rondo.exe"
	for _, f := range in.File {
		names = append(names, strings.TrimPrefix(f.Name, "rondo-v1.2.3-windows-arm64/"))
	}
	if !slices.Equal(names, want) {
		t.Errorf("the zip archive has %q, want %q", names, want)
	}
}

func TestSBOM(t *testing.T) {
	out, program := packed(t)
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(read(t, out, files[0])), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	main := bom.Metadata.Component
	if sum := fmt.Sprintf("%x", sha256.Sum256(program)); main.Name != "rondo" || main.Version != "v1.2.3" || (*main.Hashes)[0].Value != sum {
		t.Errorf("the program is %+v", main)
	}
	var names []string
	for _, c := range *bom.Components {
		names = append(names, c.Name)
		if c.Version == "" || !strings.HasSuffix(c.PackageURL, "@"+c.Version) {
			t.Errorf("%s has version %q and URL %q", c.Name, c.Version, c.PackageURL)
		}
	}
	if !slices.Contains(names, "stdlib") || !slices.Contains(names, "github.com/CycloneDX/cyclonedx-go") {
		t.Errorf("the components are %q", names)
	}
	if deps := (*bom.Dependencies)[0]; deps.Ref != main.BOMRef || len(*deps.Dependencies) != len(names) {
		t.Errorf("the dependencies are %+v", deps)
	}
}
