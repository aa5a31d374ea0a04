package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"text/template"
)

// files are templates with the delimiters [[ and ]], for charts and workflows
// have the usual ones.
//
//go:embed all:files
var files embed.FS

// writeTemplates plans the files below a folder of templates.
func (p *Plan) writeTemplates(from, to string, data any) error {
	return fs.WalkDir(files, from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fill(name, data)
		if err != nil {
			return err
		}
		return p.write(filepath.Join(to, filepath.FromSlash(strings.TrimPrefix(name, from+"/"))), text)
	})
}

func fill(name string, data any) ([]byte, error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	parsed, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, err
	}
	var filled bytes.Buffer
	if err := parsed.Execute(&filled, data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return filled.Bytes(), nil
}
