package chart

import (
	"errors"
	"fmt"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/strvals"
)

// Set puts a value at a path, both written as in helm's --set, into values.
func Set(values map[string]any, path, value string) error {
	return strvals.ParseInto(path+"="+value, values)
}

// errPath marks a path that leads to no single value.
var errPath = errors.New("expected a path to one value, as in helm's --set")

// CheckPath reports whether SetText can follow a path.
func CheckPath(path string) error {
	values := map[string]any{}
	if err := SetText(values, path, mark); err != nil || !only(values, mark) {
		return fmt.Errorf("%q: %w", path, errPath)
	}
	return nil
}

// mark stands where Helm would read the value.
const mark = "x"

// SetText puts a text at a path, which is written as in helm's --set, into
// values. The text is not looked into, unlike that of --set-string, where a
// comma begins another path, and no error tells it.
func SetText(values map[string]any, path, text string) error {
	return strvals.ParseIntoFile(path+"="+mark, values, func(written []rune) (any, error) {
		// The path has an equals sign of its own.
		if string(written) != mark {
			return nil, errPath
		}
		return text, nil
	})
}

// only reports whether a text is all that values hold.
func only(value any, text string) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			return len(v) == 1 && only(inner, text)
		}
		return false
	case []any:
		// What is before an item that does not exist is made nil.
		return len(v) > 0 && only(v[len(v)-1], text)
	default:
		return v == text
	}
}

// ValuesFile is the text of a chart's values.yaml, for what its comments say.
type ValuesFile struct {
	// Data is nil where the chart has no such file. Nobody may change it.
	Data []byte
	// Subcharts are the files of subcharts by the keys of their values, whether
	// they are on or off.
	Subcharts map[string]ValuesFile
}

// ValuesFile returns the chart's values.yaml as it was written.
func (c *Chart) ValuesFile() ValuesFile { return valuesFile(c.chart) }

func valuesFile(c *helmchart.Chart) ValuesFile {
	file := ValuesFile{Data: rawFile(c, chartutil.ValuesfileName), Subcharts: map[string]ValuesFile{}}
	for key, child := range subcharts(c) {
		file.Subcharts[key] = valuesFile(child)
	}
	return file
}
