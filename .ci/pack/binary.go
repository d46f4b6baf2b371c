package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// A binary is a program, with what the Go command wrote into it.
type binary struct {
	content []byte
	info    *debug.BuildInfo
}

func readBinary(name string) (b binary, err error) {
	if b.content, err = os.ReadFile(name); err != nil {
		return b, err
	}
	b.info, err = buildinfo.Read(bytes.NewReader(b.content))
	return b, err
}

// modules returns the modules in the program, beside the main one.
func (b *binary) modules() (all []*debug.Module) {
	for _, m := range b.info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, m)
	}
	return all
}

// licences returns the licences of all that is in the program, which those want beside it.
func (b *binary) licences(source string) ([]byte, error) {
	dirs, err := downloads(source, b.modules())
	if err != nil {
		return nil, err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := addLicences(&text, "Go "+b.info.GoVersion, strings.TrimSpace(string(root))); err != nil {
		return nil, err
	}
	for _, m := range b.modules() {
		if err := addLicences(&text, m.Path+" "+m.Version, dirs[m.Path]); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// downloads returns where the sources of the modules are.
func downloads(source string, modules []*debug.Module) (map[string]string, error) {
	dirs := make(map[string]string)
	if len(modules) == 0 {
		return dirs, nil
	}
	args := []string{"mod", "download", "-json"}
	for _, m := range modules {
		args = append(args, m.Path+"@"+m.Version)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = source, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var m struct{ Path, Dir string }
		if err := in.Decode(&m); errors.Is(err, io.EOF) {
			return dirs, nil
		} else if err != nil {
			return nil, err
		}
		dirs[m.Path] = m.Dir
	}
}

// addLicences adds the files of dir that licences want to be passed on.
func addLicences(text *bytes.Buffer, name, dir string) error {
	found := false
	for _, pattern := range []string{"LICENSE*", "LICENCE*", "COPYING*", "NOTICE*"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, f := range files {
			content, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			fmt.Fprintf(text, "=== %s: %s\n\n%s\n\n", name, filepath.Base(f), bytes.TrimSpace(content))
			found = true
		}
	}
	if !found {
		return fmt.Errorf("%s has no licence in %q", name, dir)
	}
	return nil
}

// sbom returns the list of what is in the program, in CycloneDX's JSON.
func (r *release) sbom(b binary) ([]byte, error) {
	sum := sha256.Sum256(b.content)
	main := &b.info.Main
	root := cdx.Component{
		Type:       cdx.ComponentTypeApplication,
		Name:       "rondo",
		Version:    r.version,
		BOMRef:     purl(main.Path, r.version),
		PackageURL: purl(main.Path, r.version) + "#cmd/rondo",
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "MIT"}}},
	}
	var properties []cdx.Property
	for _, s := range b.info.Settings {
		properties = append(properties, cdx.Property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	root.Properties = &properties
	library := strings.TrimPrefix(b.info.GoVersion, "go")
	components := []cdx.Component{{
		Type: cdx.ComponentTypeLibrary, Name: "stdlib", Version: library,
		BOMRef: purl("stdlib", library), PackageURL: purl("stdlib", library),
	}}
	for _, m := range b.modules() {
		c := cdx.Component{
			Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
			BOMRef: purl(m.Path, m.Version), PackageURL: purl(m.Path, m.Version),
		}
		if h, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(h) == sha256.Size {
			c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(h)}} // go.sum's
		}
		components = append(components, c)
	}
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = serial(sum)
	bom.Metadata = &cdx.Metadata{Timestamp: r.time.Format("2006-01-02T15:04:05Z"), Component: &root}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: root.BOMRef, Dependencies: &refs}}
	var text bytes.Buffer
	err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return text.Bytes(), err
}

// purl returns a module's package URL.
func purl(path, version string) string { return "pkg:golang/" + path + "@" + version }

// serial returns a UUID (version 8) that the program's checksum determines.
func serial(sum [sha256.Size]byte) string {
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
