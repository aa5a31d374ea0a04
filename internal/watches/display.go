package watches

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/jsonpath"
)

// PrinterColumn is a column of kubectl get, by the CRD's own field names.
type PrinterColumn struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format,omitempty"`
	Description string `json:"description,omitempty"`
	// Priority is 0 for a column that is always there, and more for one that
	// -o wide adds.
	Priority int32  `json:"priority,omitempty"`
	JSONPath string `json:"jsonPath"`
}

// columnTypes are those that the API server takes.
var columnTypes = []string{"boolean", "date", "integer", "number", "string"}

// checkDisplay reports names and columns that the API server would refuse.
func (p *parser) checkDisplay(w *Watch, lines map[string]int) {
	seen := map[string]bool{}
	for i, column := range w.AdditionalPrinterColumns {
		at := fmt.Sprintf("additionalPrinterColumns[%d]", i)
		p.checkColumn(lines["additionalPrinterColumns"], at, column)
		if name := strings.ToLower(column.Name); name != "" && seen[name] {
			p.problemf(lines["additionalPrinterColumns"], "%s.name: %s is the name of another column, too", at, column.Name)
		} else {
			seen[name] = true
		}
	}
	for _, list := range []struct {
		key   string
		names []string
	}{{"shortNames", w.ShortNames}, {"categories", w.Categories}} {
		for i, name := range list.names {
			if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
				p.problemf(lines[list.key], "%s[%d]: %q: %s", list.key, i, name, strings.Join(problems, "; "))
			} else if slices.Contains(list.names[:i], name) {
				p.problemf(lines[list.key], "%s[%d]: %s stands there twice", list.key, i, name)
			}
		}
	}
}

func (p *parser) checkColumn(line int, at string, column PrinterColumn) {
	if column.Name == "" {
		p.problemf(line, "%s has no name: add one, for example name: Replicas", at)
	}
	if !slices.Contains(columnTypes, column.Type) {
		p.problemf(line, "%s.type is %q: expected one of %s", at, column.Type, strings.Join(columnTypes, ", "))
	}
	if column.Priority < 0 {
		p.problemf(line, "%s.priority is %d: expected 0 (always shown) or more (shown by -o wide)", at, column.Priority)
	}
	switch err := jsonpath.New("").Parse("{" + column.JSONPath + "}"); {
	case !strings.HasPrefix(column.JSONPath, "."):
		p.problemf(line, "%s.jsonPath: %q: expected a path such as .status.replicas", at, column.JSONPath)
	case err != nil:
		p.problemf(line, "%s.jsonPath: %q: %v", at, column.JSONPath, err)
	}
}
