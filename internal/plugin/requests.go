package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
)

// request is a request to the operator, by one annotation of a custom resource.
type request struct {
	// verb is the word of the command line.
	verb string
	// annotation is set to value, or removed if the value is empty.
	annotation, value string
	// purpose completes "which you need …" in the error about a missing permission.
	purpose string
	// asked is the message without --wait.
	asked string
	judge judge
}

// outcome is the output of a request with -o json and yaml.
type outcome struct {
	// Verb is the command: rollback, resume, pause, unpause, reconcile.
	Verb      string `json:"verb"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Annotation and Value are what was written; no value where it was taken
	// away.
	Annotation string `json:"annotation"`
	Value      string `json:"value,omitempty"`
	// Outcome is Asked without --wait, else Done, Failed or Unknown.
	Outcome string `json:"outcome"`
	Message string `json:"message"`
	// State and Revision are those of the release at the end.
	State    string `json:"state,omitempty"`
	Revision int64  `json:"revision,omitempty"`
}

// waiting holds the flags of verbs that can wait.
type waiting struct {
	wait    bool
	timeout time.Duration
}

func (w *waiting) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.wait, "wait", false, "follow what happens, and end with the outcome as exit code")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 5*time.Minute, "how long to wait, with --wait")
}

// token identifies a request. It is its time, for users who read it.
func token() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") }

// setAnnotation sets an annotation of an object, or removes it if the value is
// empty.
func setAnnotation(ctx context.Context, client dynamic.ResourceInterface, name, annotation, value string) error {
	// A null removes the key.
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

// send sends a request, waits for the outcome with --wait, and prints it.
func (s *session) send(ctx context.Context, t target, cr *unstructured.Unstructured, r request, w waiting) (err error) {
	if err := setAnnotation(ctx, t.client, t.name, r.annotation, r.value); err != nil {
		return t.need("patch", r.purpose).explain(err)
	}
	if pause := annotations.Parse(cr.GetAnnotations()).Pause; pause != annotations.PauseNot && r.annotation != api.AnnotationPause {
		s.note("%s is paused: what you ask for is done when the pause ends.", t)
	}
	said := outcome{
		Verb: r.verb, Kind: t.resource().String(), Namespace: t.namespace, Name: t.name,
		Annotation: r.annotation, Value: r.value, Outcome: "Asked", Message: r.asked,
	}
	var failure error
	status := statusOf(cr)
	if w.wait {
		var v verdict
		if v, status, err = s.await(ctx, t, status, r, w.timeout); err != nil {
			return err
		}
		said.Outcome, said.Message = string(v.state), v.message
		failure = v.err(t.String())
	}
	said.State = status.State
	if status.Release != nil {
		said.Revision = status.Release.Revision
	}
	// A failure is printed once, as the error.
	if failure != nil && s.output == formatTable {
		return failure
	}
	if err := s.print(said, func() string { return fmt.Sprintf("%s: %s\n", t, said.Message) }); err != nil {
		return err
	}
	return failure
}

// requesting completes the command of a verb that sends a request. form makes the
// request from the custom resource and the words after the target, of which there
// may be some more.
func (s *session) requesting(cmd *cobra.Command, more int, form func(cr *unstructured.Unstructured, rest []string) (request, error)) *cobra.Command {
	var w waiting
	w.addFlags(cmd)
	return s.onResource(cmd, more, func(ctx context.Context, t target, cr *unstructured.Unstructured, rest []string) error {
		r, err := form(cr, rest)
		if err != nil {
			return err
		}
		r.verb = cmd.Name()
		return s.send(ctx, t, cr, r, w)
	})
}

// example indents the lines of an example as cobra shows them.
func example(lines ...string) string { return "  " + strings.Join(lines, "\n  ") }

// Words of the annotation rollback-to.
const (
	previous = "previous"
	none     = "none"
)

func newRollback(s *session) *cobra.Command {
	return s.requesting(&cobra.Command{
		Use:   "rollback KIND/NAME [REVISION]",
		Short: "Run an earlier revision again, and hold it",
		Long: `Run an earlier revision again, the last good one where none is named. It is made
from what is stored and renders nothing, so that it works while the spec is
wrong. The release then stays there, until the spec is edited or "resume".

It takes the right to patch the custom resource, and with --wait to watch it.`,
		Example: example("kubectl chartwright rollback podset/web --wait", "kubectl chartwright rollback podset/web 3"),
		Args: func(_ *cobra.Command, args []string) error {
			_, rest, err := split(args, 1)
			if err != nil || len(rest) == 0 {
				return err
			}
			return checkRollbackTo(rest[0])
		},
	}, 1, func(cr *unstructured.Unstructured, rest []string) (request, error) {
		to := previous
		if len(rest) > 0 {
			to = rest[0]
		}
		return request{
			annotation: api.AnnotationRollbackTo, value: annotations.WithGeneration(to, cr.GetGeneration(), token()),
			purpose: "to ask for a rollback", asked: "asked for " + described(to), judge: judgeRollback,
		}, nil
	})
}

// checkRollbackTo refuses anything that is not a revision.
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
	return s.requesting(&cobra.Command{
		Use:   "resume KIND/NAME",
		Short: "End a hold: let the spec count again after a rollback",
		Long: `End a hold: the release follows the spec again, which a rollback has kept from
counting. Where nothing is held, nothing changes.

It takes the right to patch the custom resource, and with --wait to watch it.`,
		Example: example("kubectl chartwright resume podset/web --wait"),
	}, 0, func(*unstructured.Unstructured, []string) (request, error) {
		return request{
			annotation: api.AnnotationRollbackTo, value: none + "@" + token(),
			purpose: "to end a hold", asked: "asked for the end of the hold", judge: judgeResume,
		}, nil
	})
}

func newPause(s *session) *cobra.Command {
	including := false
	cmd := s.requesting(&cobra.Command{
		Use:   "pause KIND/NAME",
		Short: "Keep the operator from changing anything",
		Long: `Keep the operator from changing anything of a release: no upgrade, no repair, no
rollback. What is under way goes on to its end, for which --wait waits. Health
is still told. Deletion works, unless it is included.

It takes the right to patch the custom resource, and with --wait to watch it.`,
		Example: example("kubectl chartwright pause podset/web --wait", "kubectl chartwright pause podset/web --including-deletion"),
	}, 0, func(*unstructured.Unstructured, []string) (request, error) {
		value := annotations.PauseChanges
		if including {
			value = annotations.PauseIncludingDeletion
		}
		return request{
			annotation: api.AnnotationPause, value: string(value),
			purpose: "to pause it", asked: "paused", judge: judgePause,
		}, nil
	})
	cmd.Flags().BoolVar(&including, "including-deletion", false, "nor uninstall it while it is paused")
	return cmd
}

func newUnpause(s *session) *cobra.Command {
	return s.requesting(&cobra.Command{
		Use:   "unpause KIND/NAME",
		Short: "End a pause, and do what it has kept from being done",
		Long: `End a pause. What it has kept from being done is done now; --wait waits for it.

It takes the right to patch the custom resource, and with --wait to watch it.`,
		Example: example("kubectl chartwright unpause podset/web --wait"),
	}, 0, func(*unstructured.Unstructured, []string) (request, error) {
		return request{annotation: api.AnnotationPause, purpose: "to end a pause", asked: "no longer paused", judge: judgeUnpause}, nil
	})
}

func newReconcile(s *session) *cobra.Command {
	return s.requesting(&cobra.Command{
		Use:   "reconcile KIND/NAME",
		Short: "Apply every object again, and try again at once what has failed",
		Long: `Apply every object of a release again, once, from what is stored and without a
new revision. What has failed is tried again at once, and what the chart reads
in the cluster is read again.

It takes the right to patch the custom resource, and with --wait to watch it.`,
		Example: example("kubectl chartwright reconcile podset/web --wait"),
	}, 0, func(*unstructured.Unstructured, []string) (request, error) {
		return request{
			annotation: api.AnnotationReconcile, value: token(),
			purpose: "to ask for it", asked: "asked for everything to be applied again", judge: judgeReconcile,
		}, nil
	})
}
