package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/chartwright/chartwright/internal/catalog"
)

// Op is an operation on a file.
type Op string

// Operations on files.
const (
	OpCreate Op = "create"
	OpUpdate Op = "update"
	OpRemove Op = "remove"
	OpKeep   Op = "keep"
)

// File is a file in a plan.
type File struct {
	Path string `json:"path"`
	Op   Op     `json:"op"`
}

// Plan is a set of changes to files. Its methods read the planned content, so each step
// builds on the previous ones.
type Plan struct {
	// Entry is the text of the watches entry after Add.
	Entry string
	// Resource is the resource of the kind after Add, such as webs.shop.example.com.
	Resource string
	// Notes are messages for the user, such as files that were not updated.
	Notes []string
	// Refusals are the changes that Write refuses.
	Refusals []Refusal
	// Changes are what an update of a chart changes.
	Changes *Changes
	// Unsettled is set if a note requires action.
	Unsettled bool

	files map[string]planned
	// kinds are the kinds of the project after Add.
	kinds []catalog.Kind
	// folders are removed after the files if they are empty.
	folders []string
}

// planned is the content of a file before and after. nil means that it does not exist.
type planned struct{ before, after []byte }

func newPlan() *Plan { return &Plan{files: map[string]planned{}} }

func (p *Plan) notef(format string, args ...any) {
	p.remarkf(format, args...)
	p.Unsettled = true
}

// remarkf adds a note that requires no action.
func (p *Plan) remarkf(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// read returns the planned content of a file, or nil if it does not exist.
func (p *Plan) read(path string) ([]byte, error) {
	if file, known := p.files[filepath.Clean(path)]; known {
		return file.after, nil
	}
	return readFile(path)
}

// readFile returns the content of a file, or nil if it does not exist.
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

// write plans the content of a file, or its removal if the content is nil. It ignores
// different line endings, because Git can change them in a checkout.
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

// list returns the names of the files in the planned folder, sorted.
func (p *Plan) list(folder string) ([]string, error) {
	exists := map[string]bool{}
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			exists[entry.Name()] = true
		}
	}
	for path, file := range p.files {
		if filepath.Dir(path) == filepath.Clean(folder) {
			exists[filepath.Base(path)] = file.after != nil
		}
	}
	maps.DeleteFunc(exists, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(exists)), nil
}

// Files returns the files of the plan, sorted by path.
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

// Stale returns the files whose planned content differs from the disk.
func (p *Plan) Stale() []File {
	return slices.DeleteFunc(p.Files(), func(f File) bool { return f.Op == OpKeep })
}

// Write writes the files of the plan, unless the plan contains refusals.
func (p *Plan) Write() error {
	if err := p.refused(); err != nil {
		return err
	}
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
		if err := os.WriteFile(file.Path, p.files[file.Path].after, 0o644); err != nil { //nolint:gosec // files of a project are readable for everybody
			return err
		}
	}
	for _, folder := range p.folders {
		removeEmpty(folder)
	}
	return nil
}

// removeEmpty removes a folder and the folders below it, as far as they are empty.
func removeEmpty(folder string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if entry.IsDir() {
			removeEmpty(filepath.Join(folder, entry.Name()))
		}
	}
	// It fails if a file is left.
	_ = os.Remove(folder)
}

// header is the first line of a generated file.
const header = "# Generated by \"chartwright generate\": do not edit. To maintain the file by hand, delete this line.\n"

// generatedBy matches the comment in a generated file, also of older versions and other
// commands.
var generatedBy = regexp.MustCompile(`(?i)generated by ['"]?(chartwright |make manifests)`)

// isGenerated reports whether the comment at the start of a file says that it is
// generated.
func isGenerated(data []byte) bool {
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "#") {
			return false
		}
		if generatedBy.MatchString(line) {
			return true
		}
	}
	return false
}

// generated plans a generated file, unless the user maintains the file by hand.
func (p *Plan) generated(path string, data []byte) error {
	have, err := p.read(path)
	if err != nil {
		return err
	}
	if have != nil && !isGenerated(have) {
		p.notef("%s was not updated, because it does not start with the comment of generated files: delete the file to generate it again", path)
		return p.write(path, have)
	}
	return p.write(path, data)
}

// generatedFiles plans the generated files of a folder, and the removal of other
// generated files with matching names.
func (p *Plan) generatedFiles(folder string, match *regexp.Regexp, files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := p.generated(filepath.Join(folder, filepath.FromSlash(name)), files[name]); err != nil {
			return err
		}
	}
	names, err := p.list(folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, wanted := files[name]; wanted || !match.MatchString(name) {
			continue
		}
		path := folder + "/" + name
		data, err := p.read(path)
		if err != nil {
			return err
		}
		if isGenerated(data) {
			if err := p.write(path, nil); err != nil {
				return err
			}
		}
	}
	return nil
}
