package helm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/release"
)

// ErrNotAllowed marks an action that ended before anything was written,
// because the kind's allow block in the watches file forbids what the chart
// would do with these values.
var ErrNotAllowed = errors.New("not allowed for this kind")

// ErrConflict marks an action that ended before anything was written, because
// an object of the chart exists and is not owned by the release.
var ErrConflict = errors.New("an object of the chart exists already and is not owned by this release")

// outcome turns what Helm returned into what happened. That Helm returned no
// error is not enough: it only logs some writes of the record that failed.
func (r *run) outcome(ctx context.Context, err error) error {
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
	case errors.Is(r.kube.failedHook, ErrInterrupted):
		// Helm makes a text of some errors.
		err = interruptedError{error: err, hook: r.kube.failedHook}
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	redact := r.redactor.Redact
	if errors.Is(err, chart.ErrRender) {
		redact = r.redactor.RedactParts
	}
	return &ActionError{Err: redactError(redact, err), Log: r.log.lines()}
}

// ActionError is an action that failed, with the end of Helm's log.
type ActionError struct {
	Err error
	// Log holds the last lines that Helm logged, oldest first.
	Log []string
}

// Error returns the cause alone.
func (e *ActionError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ActionError) Unwrap() error { return e.Err }

// redactError returns an error with the redacted text of err that wraps err.
func redactError(redact func(string) string, err error) error {
	if text := redact(err.Error()); text != err.Error() {
		return redactedError{error: err, text: text}
	}
	return err
}

// interruptedError is what Helm made of the error of a hook, and that error.
type interruptedError struct {
	error
	hook error
}

func (e interruptedError) Unwrap() []error { return []error{e.error, e.hook} }

// ErrInterrupted marks an action that ended because somebody ended the wait for
// one of its hooks, see HookWait.
var ErrInterrupted = errors.New("the wait for a hook was interrupted")

// classify names the errors after which nothing was changed. An action that
// wrote no record ended before it touched anything, in the templates if not for
// what it read.
func (r *run) classify(err error) error {
	switch {
	case err == nil || r.driver.WriteErr != nil:
		return err
	case r.driver.Created > 0, r.driver.ReadErr != nil, errors.Is(err, ErrRefused), errors.Is(err, ErrNotAllowed):
		return err
	case strings.Contains(err.Error(), "could not get information about the resource"):
		// The API server is away.
		return err
	case strings.Contains(err.Error(), "cannot be imported into the current release"):
		return r.kube.explainConflict(fmt.Errorf("%w: %w%s", ErrConflict, err, r.kube.wayOut()))
	default:
		return fmt.Errorf("%w: %w", chart.ErrRender, err)
	}
}

// ErrOrphaned marks an uninstall that was not begun because the custom resource
// was deleted with propagationPolicy Orphan (kubectl delete --cascade=orphan).
var ErrOrphaned = errors.New("the custom resource was deleted with propagationPolicy Orphan")

// ErrRefused marks an upgrade that ended before anything was written, because
// the API server would refuse one of the objects.
var ErrRefused = errors.New("the API server refuses an object of the new revision; nothing was changed")

type redactedError struct {
	error
	text string
}

func (e redactedError) Error() string { return e.text }

func (e redactedError) Unwrap() error { return e.error }

// ErrTestsFailed marks tests of a chart that ran and failed.
var ErrTestsFailed = errors.New("the chart's tests failed")

// ErrWaiting marks an uninstall that is done, save that objects have not gone
// yet for which it was to wait.
var ErrWaiting = errors.New("the release is uninstalled, and some of its objects are not gone yet")
