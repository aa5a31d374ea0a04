package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/release"
)

// ErrTestsFailed marks tests of a chart that ran and failed.
var ErrTestsFailed = errors.New("the chart's tests failed")

// Test runs the chart's tests on the newest revision and notes on its record
// how they went, with the request's marks. The error is ErrTestsFailed where
// they failed; any other leaves the tests to be run again. It is ErrUntrusted,
// and nothing has run, where the record is not what this operator has written.
func (c *Client) Test(ctx context.Context, r Request) error {
	run, err := c.begin(ctx, r)
	if err != nil {
		return err
	}
	if err := run.signUnlessCurrent(c, r); err != nil {
		return run.outcome(ctx, err)
	}
	run.driver.VerifiedOnly = true
	tests := action.NewReleaseTesting(run.config)
	tests.Namespace = r.Namespace
	tests.Timeout = r.Timeout
	rls, err := tests.Run(r.Release)
	tested := release.Tested{Passed: err == nil, At: metav1.NewTime(time.Now()), Message: "All tests passed"}
	switch {
	case err == nil && !hasTests(rls):
		tested.Message = "The chart has no tests"
	case err == nil:
	case run.driver.ReadErr != nil, run.driver.WriteErr != nil, ctx.Err() != nil:
		return run.outcome(ctx, err)
	default:
		err = fmt.Errorf("%w: %w", ErrTestsFailed, err)
		tested.Message = release.Truncate(run.redactor.Redact(err.Error()), release.MaxDescription)
	}
	history := c.index.History(r.Namespace, r.Release)
	if len(history) == 0 {
		return run.outcome(ctx, fmt.Errorf("%w: it is gone", release.ErrStale))
	}
	text, encodeErr := json.Marshal(tested)
	if encodeErr != nil {
		return encodeErr
	}
	// A failed test is an outcome, and an outcome that was not stored is none.
	if markErr := c.mark(ctx, history[0], r.Marks.Labels(), map[string]string{release.AnnotationTested: string(text)}); markErr != nil {
		return run.outcome(ctx, markErr)
	}
	return run.outcome(ctx, err)
}

func hasTests(rls *helmrelease.Release) bool {
	return slices.ContainsFunc(rls.Hooks, func(h *helmrelease.Hook) bool { return slices.Contains(h.Events, helmrelease.HookTest) })
}
