package chart

import (
	"encoding/base64"
	"maps"
	"path"
	"strings"

	"github.com/gobwas/glob"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"
)

// scope is what the templates of one chart see.
type scope struct {
	dot      chartutil.Values
	basePath string
}

// scopeOf returns what the templates of a chart see as their dot; those of its
// subcharts are in it, by their names, under Subcharts. It is what Helm's engine
// makes of them (recAllTpls in pkg/engine), which has no way of giving it away.
func scopeOf(c *helmchart.Chart, above chartutil.Values) chartutil.Values {
	below := map[string]any{}
	dot := chartutil.Values{
		"Chart": struct {
			helmchart.Metadata
			IsRoot bool
		}{*c.Metadata, c.IsRoot()},
		"Files":        newFiles(c.Files),
		"Release":      above["Release"],
		"Capabilities": above["Capabilities"],
		"Values":       chartutil.Values{},
		"Subcharts":    below,
	}
	if c.IsRoot() {
		dot["Values"] = above["Values"]
	} else if own, err := above.Table("Values." + c.Name()); err == nil {
		dot["Values"] = own
	}
	for _, child := range c.Dependencies() {
		below[child.Name()] = map[string]any(scopeOf(child, dot))
	}
	return dot
}

// subscopes returns the scopes of subcharts by their names.
func subscopes(scope map[string]any) map[string]map[string]any {
	found := map[string]map[string]any{}
	inner, _ := scope["Subcharts"].(map[string]any)
	for name, value := range inner {
		if one, ok := value.(map[string]any); ok {
			found[name] = one
		}
	}
	return found
}

// Files are what templates see as .Files, with the results of Helm's own type, which
// its engine does not export. TestFiles_MatchHelm compares the two.
type Files map[string][]byte

func newFiles(from []*helmchart.File) Files {
	files := make(Files, len(from))
	for _, file := range from {
		files[file.Name] = file.Data
	}
	return files
}

// Get returns the content of a file, empty if there is none.
func (f Files) Get(name string) string { return string(f[name]) }

// GetBytes returns the content of a file, empty if there is none.
func (f Files) GetBytes(name string) []byte {
	if data, ok := f[name]; ok {
		return data
	}
	return []byte{}
}

// Glob returns the files whose names match a pattern; all of them if the pattern is
// invalid.
func (f Files) Glob(pattern string) Files {
	matcher, err := glob.Compile(pattern, '/')
	if err != nil {
		return maps.Clone(f)
	}
	matching := Files{}
	for name, data := range f {
		if matcher.Match(name) {
			matching[name] = data
		}
	}
	return matching
}

// Lines returns the lines of a file.
func (f Files) Lines(name string) []string {
	if len(f[name]) == 0 {
		return []string{}
	}
	return strings.Split(strings.TrimSuffix(f.Get(name), "\n"), "\n")
}

// AsConfig returns the files as the data of a ConfigMap, in YAML.
func (f Files) AsConfig() string {
	return f.data(func(data []byte) string { return string(data) })
}

// AsSecrets returns the files as the data of a Secret, in YAML.
func (f Files) AsSecrets() string {
	return f.data(base64.StdEncoding.EncodeToString)
}

func (f Files) data(encode func([]byte) string) string {
	byName := make(map[string]string, len(f))
	for name, data := range f {
		byName[path.Base(name)] = encode(data)
	}
	// Strings always encode.
	text, _ := yaml.Marshal(byName)
	return strings.TrimSuffix(string(text), "\n")
}
