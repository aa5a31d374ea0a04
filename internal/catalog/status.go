package catalog

import (
	"maps"
	"strings"

	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
	"github.com/chartwright/chartwright/internal/watches"
)

// readStatus compiles the kind's own status fields and parses what they observe.
func (k *Kind) readStatus() (problems watches.LineErrors) {
	wrong := func(err error) {
		problems = append(problems, watches.LineError{File: k.File, Line: k.Line, Message: err.Error()})
	}
	var err error
	if k.Observes, err = observe(k.Observe); err != nil {
		wrong(err)
	}
	names := make([]string, len(k.Observe))
	for i, o := range k.Observe {
		names[i] = o.Name
	}
	written := maps.Clone(k.Status)
	// Of those that are empty the file's parser has told.
	maps.DeleteFunc(written, func(_, expression string) bool { return strings.TrimSpace(expression) == "" })
	fields, mistakes := kindstatus.Compile(written, names)
	for _, mistake := range mistakes {
		problems = append(problems, k.StatusError(mistake.Field, mistake.Message))
	}
	k.Fields = fields
	if k.Chart != nil && fields.UseValues() {
		if k.Defaults, err = k.Chart.Values(); err != nil {
			wrong(err)
		}
	}
	return problems
}
