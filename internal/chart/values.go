package chart

import (
	"errors"
	"fmt"

	"github.com/chartwright/chartwright/internal/helm/engine"
)

// Set sets the value at a path, both in the syntax of helm's --set.
func Set(values map[string]any, path, value string) error {
	return engine.ParseSetValue(path+"="+value, values)
}

// errPath is the error for a path that does not lead to exactly one value.
var errPath = errors.New("expected a path to one value, as in helm's --set")

// CheckPath returns an error if SetValue cannot set a value at the path.
func CheckPath(path string) error {
	values := map[string]any{}
	if err := SetValue(values, path, mark); err != nil || !only(values, mark) {
		return fmt.Errorf("%q: %w", path, errPath)
	}
	return nil
}

// mark is a placeholder for the value.
const mark = "x"

// SetValue sets a value of any type at a path in the syntax of helm's --set. Unlike --set, it
// does not parse a string, so that the string can contain commas. Errors do not contain the
// value.
func SetValue(values map[string]any, path string, value any) error {
	return engine.ParseSetFile(path+"="+mark, values, func(written []rune) (any, error) {
		// The path has an equals sign of its own.
		if string(written) != mark {
			return nil, errPath
		}
		return value, nil
	})
}

// only reports whether a value contains nothing but the string.
func only(value any, text string) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			return len(v) == 1 && only(inner, text)
		}
		return false
	case []any:
		// Helm sets the items before a new item to nil.
		return len(v) > 0 && only(v[len(v)-1], text)
	default:
		return v == text
	}
}

// ValuesFile is the text of a chart's values.yaml, including its comments.
type ValuesFile struct {
	// Data is nil if the chart has no values.yaml. The caller must not change it.
	Data []byte
	// Subcharts are the files of all subcharts, enabled or not, by the keys of their
	// values.
	Subcharts map[string]ValuesFile
}

// ValuesFile returns the text of the chart's values.yaml.
func (c *Chart) ValuesFile() ValuesFile { return valuesFile(c.chart) }

func valuesFile(c *engine.Chart) ValuesFile {
	file := ValuesFile{Data: rawFile(c, engine.ValuesfileName), Subcharts: map[string]ValuesFile{}}
	for key, child := range subcharts(c) {
		file.Subcharts[key] = valuesFile(child)
	}
	return file
}
