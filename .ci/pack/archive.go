package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"io"
	"time"
)

// writeTar writes files as a tar archive, compressed by gzip.
func writeTar(to io.Writer, files []file, at time.Time) error {
	packed, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(packed)
	for _, f := range files {
		if err := archive.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg,
			Name:     f.name,
			Mode:     int64(f.mode),
			Size:     int64(len(f.content)),
			ModTime:  at,
			Format:   tar.FormatUSTAR,
		}); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return packed.Close()
}

// writeZip writes files as a zip archive.
func writeZip(to io.Writer, files []file, at time.Time) error {
	archive := zip.NewWriter(to)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(f.mode)
		w, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := w.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}
