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

// definitions are CustomResourceDefinitions, one of which says whether the
// rollout of its kind is paused.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func newRollout(s *session) *cobra.Command {
	var w waiting
	var to string
	cmd := s.onKind(&cobra.Command{
		Use:   "rollout KIND",
		Short: "Show how far a new chart has come, over all custom resources of a kind",
		Long: `Show how far a new chart of a kind has come: how many custom resources run which
version, and how they are; and which have failed, and why. It is those of all
namespaces unless -n names one.

--wait follows the rollout and ends with 0 when nothing waits or is under way,
and with 1 when something has failed or the rollout is paused. Until an operator
with the new chart has begun, nothing waits: --to names the version of the chart
that all but those held and paused are to run by then.

It takes the right to list the custom resources, and with --wait to watch them.`,
		Example: example("kubectl chartwright rollout podset", "kubectl chartwright rollout podset --wait --to 1.4.0 --timeout 1h"),
	}, func(ctx context.Context, t target) error {
		judge := rolloutJudge(rolledOut)
		if to != "" {
			judge = reached(to, rolledOut)
		}
		return s.showRollout(ctx, t, w, judge)
	})
	w.addFlags(cmd)
	cmd.Flags().StringVar(&to, "to", "", "with --wait, the version of the chart that they are to run in the end")
	cmd.AddCommand(
		newRolloutPause(s, "pause", "Keep custom resources that wait for a new chart where they are", `Keep custom resources that wait for a new chart where they are. Those that are
being upgraded go on to their end, for which --wait waits. Edits of a spec are
followed all the same.`, "true", pauseInEffect),
		newRolloutPause(s, "resume", "Let custom resources that wait for a new chart have it", `End the pause: custom resources that wait for a new chart have it in their turn.
--wait follows the rollout to its end.`, "", resumed),
	)
	return cmd
}

// newRolloutPause makes one of the two verbs that set or remove the annotation
// on the kind's definition, which is where a pause lives that is not in the
// watches file.
func newRolloutPause(s *session, verb, short, long, value string, judge rolloutJudge) *cobra.Command {
	var w waiting
	cmd := s.onKind(&cobra.Command{
		Use:   verb + " KIND",
		Short: short,
		Long: long + `

It takes the right to patch the kind's CustomResourceDefinition, on which the
annotation ` + api.AnnotationRolloutPaused + ` stands, and with --wait to list and
watch the custom resources.`,
		Example: example("kubectl chartwright rollout " + verb + " podset"),
	}, func(ctx context.Context, t target) error {
		kind := t.resource().String()
		err := setAnnotation(ctx, s.dynamic.Resource(definitions), kind, api.AnnotationRolloutPaused, value)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("%s is no kind of custom resources", kind)
		case err != nil:
			return permission{verb: "patch", resource: definitions.GroupResource(), purpose: "to " + verb + " the rollout"}.explain(err)
		case w.wait:
			return s.showRollout(ctx, t, w, judge)
		}
		return s.print(rolloutAsked{Kind: kind, Paused: value != ""}, func() string {
			return fmt.Sprintf("the rollout of %s is %sd\n", kind, verb)
		})
	})
	w.addFlags(cmd)
	return cmd
}

// rolloutAsked is what the two print with -o json and yaml, without --wait.
type rolloutAsked struct {
	Kind   string `json:"kind"`
	Paused bool   `json:"paused"`
}

// pausedKind reports whether the rollout of a kind is paused on its CRD. It is nil
// if the user may not read CRDs.
func (s *session) pausedKind(ctx context.Context, t target) *bool {
	definition, err := s.dynamic.Resource(definitions).Get(ctx, t.resource().String(), metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return new(definition.GetAnnotations()[api.AnnotationRolloutPaused] == "true")
}

// table returns a rollout as a table: the versions, then the failures.
func (r rollout) table(p painter) string {
	text := p.paint(r.headline(), bold) + "\n"
	if r.Total == 0 {
		return text
	}
	lines := [][]string{{"VERSION", "TOTAL", "READY", "PROGRESSING", "FAILED", "WAITING", "HELD", "PAUSED"}}
	for _, v := range r.Versions {
		lines = append(lines, []string{
			cmp.Or(v.Version, "none"), strconv.Itoa(v.Total), strconv.Itoa(v.Ready), strconv.Itoa(v.Progressing),
			strconv.Itoa(v.Failed), strconv.Itoa(v.Waiting), strconv.Itoa(v.Held), strconv.Itoa(v.Paused),
		})
	}
	var failed strings.Builder
	for _, m := range r.Resources {
		if m.Phase == phaseFailed {
			fmt.Fprintf(&failed, "%s %s: %s\n", p.paint("failed", red), m.name(), m.Message)
		}
	}
	text += "\n" + rows(lines...)
	if failed.Len() > 0 {
		text += "\n" + failed.String()
	}
	return text
}
