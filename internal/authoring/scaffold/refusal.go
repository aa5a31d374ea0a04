package scaffold

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// Refusal is a change that Plan.Write refuses, because it can destroy work or grant
// permissions.
type Refusal struct {
	// Reason describes the change.
	Reason string `json:"reason"`
	// Flags are the flags of the command that allow the change.
	Flags string `json:"flags"`
	// Diff is a unified diff of the files that the change overwrites or removes.
	Diff string `json:"diff,omitempty"`
}

// String returns the reason and the flags.
func (r Refusal) String() string { return r.Reason + "\n" + r.Flags }

func (p *Plan) refuse(reason, flags, diff string) {
	p.Refusals = append(p.Refusals, Refusal{Reason: reason, Flags: flags, Diff: diff})
}

// refused returns an error with all refusals.
func (p *Plan) refused() error {
	if len(p.Refusals) == 0 {
		return nil
	}
	texts := make([]string, len(p.Refusals))
	for i, refusal := range p.Refusals {
		texts[i] = refusal.String()
	}
	return errors.New(strings.Join(texts, "\n"))
}

// diff returns a unified diff of planned files in a folder.
func (p *Plan) diff(folder string, names []string) (string, error) {
	var text strings.Builder
	for _, name := range names {
		path := filepath.Clean(filepath.Join(folder, filepath.FromSlash(name)))
		file := p.files[path]
		if slices.Contains(file.before, 0) || slices.Contains(file.after, 0) {
			fmt.Fprintf(&text, "Binary file %s differs\n", path)
			continue
		}
		from, to := path, path
		if file.before == nil {
			from = "/dev/null"
		}
		if file.after == nil {
			to = "/dev/null"
		}
		// The library terminates the last line without a newline.
		err := difflib.WriteUnifiedDiff(&text, difflib.UnifiedDiff{
			A: diffLines(file.before), FromFile: from, B: diffLines(file.after), ToFile: to, Context: 3,
		})
		if err != nil {
			return "", err
		}
	}
	return text.String(), nil
}

// diffLines returns the lines of a file with Unix line endings.
func diffLines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return slices.Collect(strings.Lines(string(withNewline(unixLines(data)))))
}

// some returns the first names of a list, and the number of the others.
func some(names []string) string {
	const most = 3
	if len(names) <= most+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
