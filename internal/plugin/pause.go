package plugin

import (
	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
)

func newPause(s *session) *cobra.Command {
	including := false
	cmd := s.asking(&cobra.Command{
		Use:   "pause KIND/NAME",
		Short: "Keep the operator from changing anything",
		Long: `Keep the operator from changing anything of a release: no upgrade, no repair, no
rollback. What is under way goes on to its end, for which --wait waits. Health
is still told. Deletion works, unless it is included.

It takes the right to patch the custom resource, and with --wait to watch it.`,
		Example: example("kubectl chartwright pause podset/web --wait", "kubectl chartwright pause podset/web --including-deletion"),
	}, 0, func([]string) (ask, error) {
		value := annotations.PauseChanges
		if including {
			value = annotations.PauseIncludingDeletion
		}
		return ask{
			annotation: api.AnnotationPause, value: string(value),
			purpose: "to pause it", asked: "paused", judge: judgePause,
		}, nil
	})
	cmd.Flags().BoolVar(&including, "including-deletion", false, "nor uninstall it while it is paused")
	return cmd
}

func newUnpause(s *session) *cobra.Command {
	return s.asking(&cobra.Command{
		Use:   "unpause KIND/NAME",
		Short: "End a pause, and do what it has kept from being done",
		Long: `End a pause. What it has kept from being done is done now; --wait waits for it.

It takes the right to patch the custom resource, and with --wait to watch it.`,
		Example: example("kubectl chartwright unpause podset/web --wait"),
	}, 0, func([]string) (ask, error) {
		return ask{annotation: api.AnnotationPause, purpose: "to end a pause", asked: "no longer paused", judge: judgeUnpause}, nil
	})
}

func newReconcile(s *session) *cobra.Command {
	return s.asking(&cobra.Command{
		Use:   "reconcile KIND/NAME",
		Short: "Apply every object again, and try again at once what has failed",
		Long: `Apply every object of a release again, once, from what is stored and without a
new revision. What has failed is tried again at once, and what the chart reads
in the cluster is read again.

It takes the right to patch the custom resource, and with --wait to watch it.`,
		Example: example("kubectl chartwright reconcile podset/web --wait"),
	}, 0, func([]string) (ask, error) {
		value := token()
		return ask{
			annotation: api.AnnotationReconcile, value: value,
			purpose: "to ask for it", asked: "asked for everything to be applied again", judge: judgeReconcile(value),
		}, nil
	})
}
