package helm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/release"
)

// Errors of actions, in addition to those of packages chart and release.
var (
	// ErrNotAllowed marks an action that wrote nothing, because the kind's allow block
	// in the watches file forbids an object or a lookup of the chart.
	ErrNotAllowed = errors.New("not allowed for this kind")
	// ErrConflict marks an action that wrote nothing, because an object of the chart
	// exists and is not owned by the release. If another client creates the object during
	// the action, the action ends there, and the object is not changed.
	ErrConflict = errors.New("an object of the chart exists already and is not owned by this release")
	// ErrRefused marks an upgrade that wrote nothing, because the API server would
	// reject an object.
	ErrRefused = errors.New("the API server rejected an object of the new revision; no object was changed")
	// ErrInterrupted marks an action whose wait for a hook was canceled; see HookWait.
	ErrInterrupted = errors.New("the wait for a hook was interrupted")
	// ErrOrphaned marks an uninstall that was not started because the custom resource
	// was deleted with propagationPolicy Orphan (kubectl delete --cascade=orphan).
	ErrOrphaned = errors.New("the custom resource was deleted with propagationPolicy Orphan")
	// ErrTestsFailed marks chart tests that ran and failed.
	ErrTestsFailed = errors.New("the chart's tests failed")
	// ErrWaiting marks an uninstall that is complete except for objects that still exist
	// at the timeout.
	ErrWaiting = errors.New("the release is uninstalled, but some of its objects still exist")
)

// Texts of errors that have no type. TestErrorTexts_MatchHelm checks them against
// Helm's version in go.mod.
const (
	// helmUnreachable is in Helm's error if Helm cannot read an object.
	helmUnreachable = "could not get information about the resource"
	// helmForeign is in Helm's error if an object belongs to another release.
	helmForeign = "cannot be imported into the current release"
)

// classify marks the errors after which nothing was changed. An action that stored no
// record failed before any change, while it checked objects or executed templates.
func (r *run) classify(err error) error {
	switch {
	case err == nil || r.driver.WriteErr != nil, apply.Retryable(err):
		return err
	case r.driver.Created > 0, r.driver.ReadErr != nil, errors.Is(err, ErrRefused), errors.Is(err, ErrNotAllowed):
		return err
	case strings.Contains(err.Error(), helmUnreachable):
		return err
	case strings.Contains(err.Error(), helmForeign):
		return r.kube.explainConflict(fmt.Errorf("%w: %w%s", ErrConflict, err, r.kube.conflictHint()))
	default:
		return fmt.Errorf("%w: %w", chart.ErrRender, err)
	}
}

// joinReasons returns err with all reasons, or nil without reasons.
func joinReasons(err error, reasons []string) error {
	if len(reasons) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", err, strings.Join(reasons, "; "))
}

// isRefusal reports whether the API server rejects the object, as opposed to being
// unavailable.
func isRefusal(err error) bool {
	switch apply.AnswerOf(err) {
	case apply.Gone, apply.Unserved, apply.Forbidden, apply.Refused:
		return true
	default:
		return false
	}
}

// outcome returns the error of an action. It also returns failed writes of the record
// that Helm only logs, and restores original errors that Helm turned into text.
func (r *run) outcome(err error) error {
	switch {
	case err == nil && r.driver.WriteErr != nil:
		err = r.driver.WriteErr
	case err == nil:
		return nil
	case errors.Is(err, release.ErrStale), errors.Is(err, release.ErrTooLarge), errors.Is(err, chart.ErrInvalidValues),
		errors.Is(err, ErrNotAllowed), errors.Is(err, ErrRefused):
	case errors.Is(r.driver.ReadErr, release.ErrUntrusted):
		err = r.driver.ReadErr
	case errors.Is(r.driver.WriteErr, release.ErrStale):
		err = r.driver.WriteErr
	case errors.Is(r.kube.failedHook, ErrInterrupted), apply.Retryable(r.kube.failedHook):
		// The text is Helm's.
		err = rewordedError{error: errors.Join(err, r.kube.failedHook), text: err.Error()}
	case r.kube.ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", context.Cause(r.kube.ctx), err)
	}
	redact := r.Redactor.Redact
	if errors.Is(err, chart.ErrRender) && !strings.HasPrefix(err.Error(), failed) {
		redact = r.Redactor.RedactParts
	}
	if text := redact(err.Error()); text != err.Error() {
		err = rewordedError{error: err, text: text}
	}
	return &ActionError{Err: err, Log: r.kube.log.lines()}
}

// failed begins the error of a template that calls the function fail. It quotes what the
// template passes, and no token of a parser.
var failed = chart.ErrRender.Error() + ": execution error at ("

// ActionError is the error of an action, with the last lines of Helm's log.
type ActionError struct {
	Err error
	// Log holds the last lines that Helm logged, oldest first.
	Log []string
}

// Error returns the text of the cause.
func (e *ActionError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ActionError) Unwrap() error { return e.Err }

// rewordedError is an error with another text.
type rewordedError struct {
	error
	text string
}

func (e rewordedError) Error() string { return e.text }

func (e rewordedError) Unwrap() error { return e.error }
