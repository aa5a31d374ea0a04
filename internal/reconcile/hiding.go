package reconcile

import (
	"slices"
	"sync"

	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/plan"
)

// hiding takes out of what an action says what nobody may read. An action that
// goes by a stored revision meets the values of that time, of which the Secret
// may hold others by now, or be gone: whatever of these values does not stand in
// the spec or in the watches file counts as secret.
type hiding struct {
	// stored tells what is secret of values that were stored, nil where the
	// action renders its own.
	stored func(map[string]any) valuesfrom.Secrets

	mu      sync.Mutex
	secrets valuesfrom.Secrets
}

// hidingIn is for one action on a custom resource.
func (r *Reconciler) hidingIn(v *view, step plan.Step) *hiding {
	hide := &hiding{secrets: v.secrets}
	renders := step == plan.StepInstall || step == plan.StepUpgrade
	if len(r.Kind.Sources) > 0 && !renders {
		hide.stored = func(values map[string]any) valuesfrom.Secrets {
			// Of a spec that cannot be read nothing is known to be public.
			object, _ := customresource.Expand(v.cr)
			spec, _ := object["spec"].(map[string]any)
			return valuesfrom.SecretsBeside(values, spec, r.Kind.Overrides)
		}
	}
	return hide
}

// AddStoredValues adds the values of a revision.
func (h *hiding) AddStoredValues(values map[string]any) {
	if h.stored == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.secrets = slices.Concat(h.secrets, h.stored(values))
}

// AddSecret adds the data of a Secret that a template has looked up.
func (h *hiding) AddSecret(data map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.secrets = slices.Concat(h.secrets, valuesfrom.SecretsIn(data))
}

func (h *hiding) known() valuesfrom.Secrets {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.secrets
}

// Redact removes secret values from a text.
func (h *hiding) Redact(text string) string { return h.known().Redact(text) }

// RedactParts removes parts of secret values, too.
func (h *hiding) RedactParts(text string) string { return h.known().RedactParts(text) }
