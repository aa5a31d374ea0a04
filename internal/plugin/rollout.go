package plugin

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
)

// crds are CustomResourceDefinitions. The one of a kind has the annotation that pauses
// its rollout.
var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func newRollout(s *session) *cobra.Command {
	// "rollout KIND" is the former name of "rollout status KIND".
	cmd := newRolloutStatus(s)
	cmd.Use, cmd.Short = "rollout", "Show, pause and resume the rollout of a new chart"
	cmd.Long = `Show, pause and resume the rollout of a new chart to all custom resources of a
kind.`
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf(`expected a command, such as "%s rollout status podset"`, commandLine)
		}
		return nil
	}
	for _, name := range []string{"wait", "timeout", "to"} {
		must(cmd.Flags().MarkHidden(name))
	}
	cmd.AddCommand(
		newRolloutStatus(s),
		newRolloutPause(s, "pause", "Pause the rollout of a new chart", `Pause the rollout of a new chart: waiting custom resources keep the old chart.
Running upgrades finish; --wait waits for them. The operator still deploys edits
of a spec.`, "true", pauseInEffect),
		newRolloutPause(s, "resume", "Resume the rollout of a new chart", `Resume the rollout of a new chart. --wait waits until the rollout has finished or
stopped. A pause in watches.yaml stays in effect.`, "", resumedRollout),
	)
	return cmd
}

func newRolloutStatus(s *session) *cobra.Command {
	var w waiting
	var to string
	cmd := s.onKind(&cobra.Command{
		Use:   "status KIND",
		Short: "Show the progress of a rollout",
		Long: `Show the progress of a rollout: how many custom resources have which version of
the chart, whether they are ready, and why upgrades failed. The default is all
namespaces.

With --wait, the exit code is 0 when no custom resource waits or progresses, and 1
if an upgrade failed or the rollout is paused. Set --to if the operator with the
new chart may not be running yet. Held and paused custom resources are ignored.

Required permissions: list on the kind, and watch for --wait.`,
		Example: example("kubectl chartwright rollout status podset", "kubectl chartwright rollout status podset --wait --to 1.4.0 --timeout 1h"),
	}, func(ctx context.Context, t target) error {
		judge := rolloutJudge(rolloutFinished)
		if to != "" {
			judge = reached(to, rolloutFinished)
		}
		return s.showRollout(ctx, t, w, judge)
	})
	w.addFlags(cmd)
	cmd.Flags().StringVar(&to, "to", "", "with --wait: chart version to wait for (default: any)")
	return cmd
}

// newRolloutPause returns the command that sets the annotation rollout-paused on the
// CRD of the kind, or removes it if value is empty.
func newRolloutPause(s *session, verb, short, long, value string, judge rolloutJudge) *cobra.Command {
	var w waiting
	cmd := s.onKind(&cobra.Command{
		Use:   verb + " KIND",
		Short: short,
		Long: long + `

This changes the annotation ` + api.AnnotationRolloutPaused + ` of the CRD.

Required permissions: patch on the CRD of the kind; for --wait also list and watch
on the kind.`,
		Example: example("kubectl chartwright rollout " + verb + " podset --wait"),
	}, func(ctx context.Context, t target) error {
		kind := t.resource().String()
		err := setAnnotation(ctx, s.dynamic.Resource(crds), kind, api.AnnotationRolloutPaused, value)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("%s has no CustomResourceDefinition: expected a kind of custom resources", kind)
		case err != nil:
			return permission{verb: "patch", resource: crds.GroupResource(), purpose: "to " + verb + " the rollout"}.explain(err)
		case w.wait:
			return s.showRollout(ctx, t, w, judge)
		}
		return s.print(rolloutPauseOutput{Kind: kind, Paused: value != ""}, func() string {
			return fmt.Sprintf("rollout of %s %sd\n", kind, verb)
		})
	})
	w.addFlags(cmd)
	return cmd
}

// rolloutPauseOutput is the output of rollout pause and rollout resume with -o json
// and yaml, without --wait.
type rolloutPauseOutput struct {
	Kind   string `json:"kind"`
	Paused bool   `json:"paused"`
}

// pausedOnCRD reports whether the CRD of a kind pauses its rollout. It returns nil if
// the user cannot read the CRD.
func (s *session) pausedOnCRD(ctx context.Context, t target) *bool {
	crd, err := s.dynamic.Resource(crds).Get(ctx, t.resource().String(), metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return new(crd.GetAnnotations()[api.AnnotationRolloutPaused] == "true")
}

// table formats a rollout: a summary, the chart versions, and the failures.
func (r rolloutOutput) table(p painter) string {
	text := p.paint(r.headline(), bold) + "\n"
	if r.Total == 0 {
		return text
	}
	rows := [][]string{{"VERSION", "TOTAL", "READY", "PROGRESSING", "FAILED", "WAITING", "HELD", "PAUSED"}}
	for _, v := range r.Versions {
		rows = append(rows, []string{
			cmp.Or(v.Version, "none"), strconv.Itoa(v.Total), strconv.Itoa(v.Ready), strconv.Itoa(v.Progressing),
			strconv.Itoa(v.Failed), strconv.Itoa(v.Waiting), strconv.Itoa(v.Held), strconv.Itoa(v.Paused),
		})
	}
	var failed strings.Builder
	for _, m := range r.Resources {
		if m.Phase == phaseFailed {
			fmt.Fprintf(&failed, "%s %s: %s\n", p.paint("failed", red), join("/", m.Namespace, m.Name), m.Message)
		}
	}
	text += "\n" + table(rows...)
	if failed.Len() > 0 {
		text += "\n" + failed.String()
	}
	return text
}
