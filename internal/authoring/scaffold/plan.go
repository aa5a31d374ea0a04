package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Op is what becomes of a file.
type Op string

// What becomes of files.
const (
	OpCreate Op = "create"
	OpUpdate Op = "update"
	OpRemove Op = "remove"
	OpKeep   Op = "keep"
)

// File is a file of a plan.
type File struct {
	Path string
	Op   Op
}

// Plan is what is to become of files. It reads like the disk after it was
// written, so that one step can build on another.
type Plan struct {
	// Entry is the text of the watches entry, after Add.
	Entry string
	// Notes are for a person to read: what could not be derived, what was left
	// as it is.
	Notes []string
	// Unsettled: some note is of what a person has to see to.
	Unsettled bool

	files map[string]planned
}

// planned is a file before and after; nil is a file that is not there.
type planned struct{ before, after []byte }

func newPlan() *Plan { return &Plan{files: map[string]planned{}} }

func (p *Plan) notef(format string, args ...any) {
	p.remarkf(format, args...)
	p.Unsettled = true
}

// remarkf notes what is as it should be.
func (p *Plan) remarkf(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// read returns a file as the plan leaves it. One that is not there is nil.
func (p *Plan) read(path string) ([]byte, error) {
	if file, known := p.files[filepath.Clean(path)]; known {
		return file.after, nil
	}
	return readFile(path)
}

// readFile returns nil for a file that is not there.
func readFile(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && data == nil {
		data = []byte{}
	}
	return data, err
}

// write plans the content of a file; nil removes it. Content that differs from
// that of the disk by the ends of lines alone, which checkouts on Windows
// change, is the same.
func (p *Plan) write(path string, data []byte) error {
	path = filepath.Clean(path)
	file, known := p.files[path]
	if !known {
		before, err := readFile(path)
		if err != nil {
			return err
		}
		file.before = before
	}
	file.after = data
	if data != nil && file.before != nil && bytes.Equal(unixLines(data), unixLines(file.before)) {
		file.after = file.before
	}
	p.files[path] = file
	return nil
}

func unixLines(data []byte) []byte { return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")) }

// list returns the names of the files of a folder, as the plan leaves them, in
// order.
func (p *Plan) list(folder string) ([]string, error) {
	there := map[string]bool{}
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			there[entry.Name()] = true
		}
	}
	for path, file := range p.files {
		if filepath.Dir(path) == filepath.Clean(folder) {
			there[filepath.Base(path)] = file.after != nil
		}
	}
	maps.DeleteFunc(there, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(there)), nil
}

// Files returns the files of the plan in the order of their paths.
func (p *Plan) Files() []File {
	files := make([]File, 0, len(p.files))
	for _, path := range slices.Sorted(maps.Keys(p.files)) {
		file := p.files[path]
		op := OpUpdate
		switch {
		case file.before == nil && file.after == nil:
			continue
		case file.before == nil:
			op = OpCreate
		case file.after == nil:
			op = OpRemove
		case bytes.Equal(file.before, file.after):
			op = OpKeep
		}
		files = append(files, File{Path: path, Op: op})
	}
	return files
}

// Stale returns the files that differ from what is on the disk.
func (p *Plan) Stale() []File {
	return slices.DeleteFunc(p.Files(), func(f File) bool { return f.Op == OpKeep })
}

// Write makes the disk what the plan says.
func (p *Plan) Write() error {
	for _, file := range p.Stale() {
		if file.Op == OpRemove {
			if err := os.Remove(file.Path); err != nil {
				return err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file.Path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file.Path, p.files[file.Path].after, 0o644); err != nil { //nolint:gosec // files of a project are for all to read
			return err
		}
	}
	return nil
}
