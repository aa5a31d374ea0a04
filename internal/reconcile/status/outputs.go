package status

import (
	"maps"
	"slices"
	"strings"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
)

// Outputs are the outputs of a release.
type Outputs struct {
	// Known: the outputs were computed. Otherwise the status keeps those it has.
	Known bool
	// Values are the outputs for the status, nil for null. Those that are Unknown keep their
	// values.
	Values  map[string]any
	Unknown []string
	// Secret is the name of the Secret with the sensitive outputs, empty without sensitive outputs.
	Secret string
	// Failures are those of all outputs.
	Failures []kindstatus.Error
	// Refused reports that the API server rejects the outputs.
	Refused bool
}

// Refuse drops the outputs, so that the rest of the status can be written, and returns
// false if there were none.
func (o *Outputs) Refuse() bool {
	if len(o.Values) == 0 {
		return false
	}
	names := strings.Join(slices.Sorted(maps.Keys(o.Values)), ", status.outputs.")
	*o = Outputs{Refused: true, Failures: []kindstatus.Error{{Field: "outputs." + names, Message: messageRefused}}}
	return true
}

// Of returns the outputs of a custom resource, and the name of the Secret, from those in its
// present status.
func (o *Outputs) Of(present api.Status) (api.Outputs, string) {
	if !o.Known {
		return present.Outputs, present.OutputsSecret
	}
	var outputs api.Outputs
	set := func(name string, value any) {
		if outputs == nil {
			outputs = api.Outputs{}
		}
		outputs[name] = value
	}
	for name, value := range o.Values {
		if value != nil {
			set(name, value)
		}
	}
	for _, name := range o.Unknown {
		delete(outputs, name)
		if value, is := present.Outputs[name]; is {
			set(name, value)
		}
	}
	return outputs, o.Secret
}
