package catalog

import (
	"strings"

	"github.com/chartwright/chartwright/internal/inventory/health"
	"github.com/chartwright/chartwright/internal/watches"
)

// readHealth compiles the health rules.
func (k *Kind) readHealth() (problems watches.LineErrors) {
	for i, written := range k.Health {
		if strings.TrimSpace(written.Ready) == "" {
			// The parser of the file reports this.
			continue
		}
		rule, mistakes := health.Compile(written.Ready, written.Failed, written.Message)
		for _, mistake := range mistakes {
			problems = append(problems, k.HealthError(i, mistake.Field, mistake.Message))
		}
		if k.HealthRules == nil {
			k.HealthRules = health.Rules{}
		}
		k.HealthRules[written.GroupKind()] = rule
	}
	return problems
}
