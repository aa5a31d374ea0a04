package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
)

// request is a request to the operator. It is made by one annotation of a custom
// resource.
type request struct {
	// verb is the name of the command in the output.
	verb string
	// annotation is set to value, or removed if value is empty.
	annotation, value string
	// purpose completes "which is required …" in the error for a missing permission.
	purpose string
	// message is the output without --wait.
	message string
	judge   judge
	// deletes reports that the request ends with the deletion of the custom resource.
	deletes bool
}

// requestOutput is the output of a request with -o json and yaml.
type requestOutput struct {
	// Verb is the command: rollback, unhold, pause, resume, reconcile, approve.
	Verb      string `json:"verb"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Annotation was set to Value, or removed if there is no value.
	Annotation string `json:"annotation"`
	Value      string `json:"value,omitempty"`
	// Outcome is Requested without --wait, else Done, Failed or Unknown.
	Outcome string `json:"outcome"`
	Message string `json:"message"`
	// State and Revision are those of the release at the end.
	State    string `json:"state,omitempty"`
	Revision int64  `json:"revision,omitempty"`
}

// waiting holds the values of --wait and --timeout.
type waiting struct {
	wait    bool
	timeout time.Duration
}

func (w *waiting) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.wait, "wait", false, "report progress and wait for the outcome")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 5*time.Minute, "maximum time for --wait")
}

// token returns a unique value for a request: the time, which users can read.
func token() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") }

// setAnnotation sets an annotation of an object, or removes it if value is empty.
func setAnnotation(ctx context.Context, client dynamic.ResourceInterface, name, annotation, value string) error {
	// A null in a merge patch removes the key.
	var set any
	if value != "" {
		set = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotation: set}}})
	if err != nil {
		return fmt.Errorf("encode the annotation: %w", err)
	}
	_, err = client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: api.FieldManagerCLI})
	return err
}

// send writes the annotation of a request, waits for the outcome with --wait, and
// prints it.
func (s *session) send(ctx context.Context, t target, cr *unstructured.Unstructured, r request, w waiting) (err error) {
	if err := setAnnotation(ctx, t.client, t.name, r.annotation, r.value); err != nil {
		return t.need("patch", r.purpose).explain(err)
	}
	if isPaused(cr) && r.annotation != api.AnnotationPause {
		s.note("%s is paused: the request takes effect when reconciliation resumes.", t)
	}
	out := requestOutput{
		Verb: r.verb, Kind: t.resource().String(), Namespace: t.namespace, Name: t.name,
		Annotation: r.annotation, Value: r.value, Outcome: "Requested", Message: r.message,
	}
	var failure error
	status := statusOf(cr)
	if w.wait {
		var v verdict
		v, status, err = s.await(ctx, t, status, r, w.timeout)
		switch {
		case r.deletes && (errors.Is(err, errDeleted) || apierrors.IsNotFound(err)):
			v = verdict{outcomeDone, "deleted"}
		case err != nil:
			return err
		}
		out.Outcome, out.Message = string(v.outcome), v.message
		failure = v.err(t.String())
	}
	out.State = status.State
	if status.Release != nil {
		out.Revision = status.Release.Revision
	}
	// With the table format, a failure is printed only once: as the error.
	if failure != nil && s.output == formatTable {
		return failure
	}
	if err := s.print(out, func() string { return fmt.Sprintf("%s: %s\n", t, out.Message) }); err != nil {
		return err
	}
	return failure
}

// onRequest makes cmd a command that sends a request. build returns the request for
// the custom resource and the arguments after KIND/NAME, at most extra.
func (s *session) onRequest(cmd *cobra.Command, extra int, build func(t target, cr *unstructured.Unstructured, rest []string) request) *cobra.Command {
	cmd.Long += "\n\nRequired permissions: get and patch on the custom resource, and watch for --wait."
	var w waiting
	w.addFlags(cmd)
	return s.onResource(cmd, extra, func(ctx context.Context, t target, cr *unstructured.Unstructured, rest []string) error {
		r := build(t, cr, rest)
		r.verb = cmp.Or(r.verb, cmd.Name())
		return s.send(ctx, t, cr, r, w)
	})
}

// example indents the lines of an example as cobra does.
func example(lines ...string) string { return "  " + strings.Join(lines, "\n  ") }

func isPaused(cr *unstructured.Unstructured) bool {
	return annotations.Parse(cr.GetAnnotations()).Pause != annotations.PauseNot
}

// Values of the annotation rollback-to that are not revisions.
const (
	previous = "previous"
	none     = "none"
)

func newRollback(s *session) *cobra.Command {
	return s.onRequest(&cobra.Command{
		Use:   "rollback KIND/NAME [REVISION]",
		Short: "Roll back to a revision, and hold the release",
		Long: `Roll back to a revision, by default the one that became ready before the newest
change ("previous" in the output of "history"). The operator deploys the stored
manifest and does not render the chart, so that a rollback works even if the spec
is invalid. It then holds the release until you edit the spec or run "unhold".`,
		Example: example("kubectl chartwright rollback podset/web --wait", "kubectl chartwright rollback podset/web 3"),
		Args: func(_ *cobra.Command, args []string) error {
			_, rest, err := split(args, 1)
			if err != nil || len(rest) == 0 {
				return err
			}
			return checkRollbackTo(rest[0])
		},
	}, 1, func(_ target, cr *unstructured.Unstructured, rest []string) request {
		to, described := previous, "the previous good revision"
		if len(rest) > 0 && rest[0] != previous {
			to, described = rest[0], "revision "+rest[0]
		}
		return request{
			annotation: api.AnnotationRollbackTo, value: annotations.WithGeneration(to, cr.GetGeneration(), token()),
			purpose: "to request a rollback", message: "rollback to " + described + " requested", judge: judgeRollback,
		}
	})
}

// checkRollbackTo returns an error if the argument is not a revision.
func checkRollbackTo(to string) error {
	if to == none {
		return fmt.Errorf(`to release a hold, use "%s unhold"`, commandLine)
	}
	if revision, err := strconv.Atoi(to); to != previous && (err != nil || revision < 1) {
		return fmt.Errorf("invalid revision %q: expected a number from \"%s history\", or %s", to, commandLine, previous)
	}
	return nil
}

func newUnhold(s *session) *cobra.Command {
	return s.onRequest(&cobra.Command{
		Use:   "unhold KIND/NAME",
		Short: "Release the hold after a rollback",
		Long: `Release the hold after a rollback: the operator deploys the spec again. Nothing
changes if the release is not held.`,
		Example: example("kubectl chartwright unhold podset/web --wait"),
	}, 0, func(target, *unstructured.Unstructured, []string) request { return unhold() })
}

func unhold() request {
	return request{
		verb: "unhold", annotation: api.AnnotationRollbackTo, value: none + "@" + token(),
		purpose: "to release the hold", message: "release of the hold requested", judge: judgeUnhold,
	}
}

func newPause(s *session) *cobra.Command {
	value := annotations.PauseChanges
	includingDeletion := false
	cmd := s.onRequest(&cobra.Command{
		Use:   "pause KIND/NAME",
		Short: "Pause reconciliation",
		Long: `Pause reconciliation: the operator does not upgrade, roll back or correct the
release, but still reports its health. A running action finishes; --wait waits
for it. The custom resource can still be deleted, which uninstalls the release,
unless you set --including-deletion.`,
		Example: example("kubectl chartwright pause podset/web --wait", "kubectl chartwright pause podset/web --including-deletion"),
	}, 0, func(target, *unstructured.Unstructured, []string) request {
		if includingDeletion {
			value = annotations.PauseIncludingDeletion
		}
		return request{annotation: api.AnnotationPause, value: string(value), purpose: "to pause reconciliation", message: "paused", judge: judgePause}
	})
	cmd.Flags().BoolVar(&includingDeletion, "including-deletion", false, "also pause the uninstall")
	return cmd
}

func newResume(s *session) *cobra.Command {
	return s.onRequest(&cobra.Command{
		Use:   "resume KIND/NAME",
		Short: "Resume reconciliation",
		Long: `Resume reconciliation after a pause. The operator then makes the changes that the
pause has delayed; --wait waits for them.

Deprecated: if the custom resource is held and not paused, this command releases
the hold. Use "unhold" for that.`,
		Example: example("kubectl chartwright resume podset/web --wait"),
	}, 0, func(t target, cr *unstructured.Unstructured, _ []string) request { return s.resumeRequest(t, cr) })
}

// resumeRequest returns the request of resume. If the custom resource is held and not
// paused, it is that of unhold.
func (s *session) resumeRequest(t target, cr *unstructured.Unstructured) request {
	if !isPaused(cr) && trueCondition(statusOf(cr), api.ConditionHeld) != nil {
		s.note(`Warning: %s is held, not paused. "resume" releases the hold, which is deprecated: use "%s unhold".`, t, commandLine)
		return unhold()
	}
	return resume()
}

func resume() request {
	return request{annotation: api.AnnotationPause, purpose: "to resume reconciliation", message: "resumed", judge: judgeResume}
}

// newUnpause returns the former name of resume, which never releases a hold.
func newUnpause(s *session) *cobra.Command {
	return s.onRequest(&cobra.Command{
		Use:     "unpause KIND/NAME",
		Short:   "Resume reconciliation",
		Long:    `Resume reconciliation after a pause. This is the former name of "resume".`,
		Example: example("kubectl chartwright unpause podset/web --wait"),
		Hidden:  true,
	}, 0, func(target, *unstructured.Unstructured, []string) request { return resume() })
}

func newReconcile(s *session) *cobra.Command {
	return s.onRequest(&cobra.Command{
		Use:   "reconcile KIND/NAME",
		Short: "Apply all resources of a release again",
		Long: `Apply all resources of a release again, once, without a new revision. A failed
action is retried at once, and the chart's lookups in the cluster are repeated.`,
		Example: example("kubectl chartwright reconcile podset/web --wait"),
	}, 0, func(target, *unstructured.Unstructured, []string) request {
		return request{
			annotation: api.AnnotationReconcile, value: token(),
			purpose: "to request a reconciliation", message: "reconciliation requested", judge: judgeReconcile,
		}
	})
}
