package main

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// files is a layer of folders, files and links, by their paths without a leading
// slash. The parent folders must be included.
type files map[string]file

// file is one entry of a layer.
type file struct {
	mode int64
	// uid is the user and the group.
	uid int
	// text is the content; source is a file with the content; link is the target
	// of a symbolic link. A path that ends in a slash is a folder.
	text, source, link string
}

func (f files) key() (string, error) {
	hash := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(hash, "%s %+v\n", path, f[path]) //nolint:errcheck // a hash never fails
		if f[path].source == "" {
			continue
		}
		source, err := os.Open(f[path].source)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(hash, source)
		if err := errors.Join(err, source.Close()); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("files %x", hash.Sum(nil)), nil
}

func (f files) write(_ context.Context, _ options, path string) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(out)
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if err := f[name].append(archive, name); err != nil {
			return errors.Join(err, out.Close())
		}
	}
	return errors.Join(archive.Close(), out.Close())
}

func (f file) append(archive *tar.Writer, name string) error {
	header := &tar.Header{Name: name, Mode: f.mode, Uid: f.uid, Gid: f.uid, Typeflag: tar.TypeReg, Size: int64(len(f.text))}
	var content io.Reader = strings.NewReader(f.text)
	switch {
	case strings.HasSuffix(name, "/"):
		header.Typeflag = tar.TypeDir
	case f.link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, f.link
	case f.source != "":
		source, err := os.Open(f.source)
		if err != nil {
			return err
		}
		defer source.Close() //nolint:errcheck // it is only read
		info, err := source.Stat()
		if err != nil {
			return err
		}
		header.Size, content = info.Size(), source
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(archive, content)
	return err
}

// program is a layer with one program, and a folder for temporary files.
func program(path, source string) files {
	f := files{path: {mode: 0o755, source: source}, "tmp/": {mode: 0o1777}}
	for i, c := range path {
		if c == '/' {
			f[path[:i+1]] = file{mode: 0o755}
		}
	}
	return f
}
