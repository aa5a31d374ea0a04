package plugin

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
)

// Words of the annotation rollback-to.
const (
	previous = "previous"
	none     = "none"
)

func newRollback(s *session) *cobra.Command {
	return s.asking(&cobra.Command{
		Use:   "rollback KIND/NAME [REVISION]",
		Short: "Run an earlier revision again, and hold it",
		Long: `Run an earlier revision again, the last good one where none is named. It is made
from what is stored and renders nothing, so that it works while the spec is
wrong. The release then stays there, until the spec is edited or "resume".

It takes the right to patch the custom resource, and with --wait to watch it.`,
		Example: example("kubectl chartwright rollback podset/web --wait", "kubectl chartwright rollback podset/web 3"),
	}, 1, func(rest []string) (ask, error) {
		to := previous
		if len(rest) > 0 {
			to = rest[0]
		}
		return ask{
			annotation: api.AnnotationRollbackTo,
			purpose:    "to ask for a rollback", asked: "asked for " + described(to),
			at: func(generation int64) (string, judge) {
				value := annotations.WithGeneration(to, generation, token())
				return value, judgeRollback(value)
			},
		}, checkRollbackTo(to)
	})
}

// checkRollbackTo refuses what is no revision.
func checkRollbackTo(to string) error {
	if to == none {
		return fmt.Errorf(`to let the spec count again, use "%s resume"`, shown)
	}
	if revision, err := strconv.Atoi(to); to != previous && (err != nil || revision < 1) {
		return fmt.Errorf("%q is no revision: expected a number, as \"%s history\" lists them, or %s", to, shown, previous)
	}
	return nil
}

func described(to string) string {
	if to == previous {
		return "the last good revision"
	}
	return "revision " + to
}

func newResume(s *session) *cobra.Command {
	return s.asking(&cobra.Command{
		Use:   "resume KIND/NAME",
		Short: "End a hold: let the spec count again after a rollback",
		Long: `End a hold: the release follows the spec again, which a rollback has kept from
counting. Where nothing is held, nothing changes.

It takes the right to patch the custom resource, and with --wait to watch it.`,
		Example: example("kubectl chartwright resume podset/web --wait"),
	}, 0, func([]string) (ask, error) {
		value := none + "@" + token()
		return ask{
			annotation: api.AnnotationRollbackTo, value: value,
			purpose: "to end a hold", asked: "asked for the end of the hold",
			judge: judgeResume(value),
		}, nil
	})
}
