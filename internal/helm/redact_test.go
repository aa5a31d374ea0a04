package helm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/release"
)

const canary = "canary-77c1"

// hideCanary redacts the secret value.
func hideCanary(text string) string { return strings.ReplaceAll(text, canary, "…") }

// canaryRedactor redacts the secret value, and in RedactParts also parts of it.
type canaryRedactor struct{ NoOp }

func (canaryRedactor) Redact(text string) string { return hideCanary(text) }

func (canaryRedactor) RedactParts(text string) string {
	return strings.ReplaceAll(text, canary[:4], "…")
}

func TestActionError_ContainsNoSecret(t *testing.T) {
	log := &logBuffer{redact: hideCanary}
	log.printf("creating %s", canary)
	// Truncation must not leave half of a secret.
	hook := strings.Repeat("x", outputWidth-len("…")-5) + canary
	if _, err := log.output("", "", "hook").Write([]byte(hook + "\n")); err != nil {
		t.Fatal(err)
	}
	cause := fmt.Errorf("%w: spec.password is %s", chart.ErrInvalidValues, canary)
	for name, err := range map[string]error{"error of Helm": cause, "failed write": nil} {
		r := &run{kube: &kubeClient{ctx: t.Context(), log: log}, driver: &release.Driver{}, Request: Request{Redactor: canaryRedactor{}}}
		if err == nil {
			r.driver.WriteErr = cause
		}
		err := r.outcome(err)
		if strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), "spec.password is …") {
			t.Errorf("%s: %v", name, err)
		}
		var action *ActionError
		if !errors.Is(err, chart.ErrInvalidValues) || !errors.As(err, &action) {
			t.Fatalf("%s: %v lost its type", name, err)
		}
		if text := strings.Join(action.Log, "\n"); strings.Contains(text, canary[:4]) || !strings.HasPrefix(text, "creating …\nhook: xxx") {
			t.Errorf("%s: the log is %q", name, text)
		}
	}
	// A parser may quote a part of the value.
	parts := &run{kube: &kubeClient{ctx: t.Context(), log: log}, driver: &release.Driver{}, Request: Request{Redactor: canaryRedactor{}}}
	for _, test := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: %s", chart.ErrRender, canary[:5]), chart.ErrRender.Error() + ": …" + canary[4:5]},
		{fmt.Errorf("%w: execution error at (a.yaml:1:2): %s", chart.ErrRender, canary[:5]), failed + "a.yaml:1:2): " + canary[:5]},
		{fmt.Errorf("%w: %s", ErrConflict, canary[:5]), ErrConflict.Error() + ": " + canary[:5]},
	} {
		if got := parts.outcome(test.err); got.Error() != test.want || !errors.Is(got, errors.Unwrap(test.err)) {
			t.Errorf("%v, want %s", got, test.want)
		}
	}
	// Without secrets, the text does not change.
	r := &run{kube: &kubeClient{ctx: t.Context(), log: &logBuffer{}}, driver: &release.Driver{}, Request: Request{Redactor: NoOp{}}}
	if err := r.outcome(cause); err.Error() != cause.Error() {
		t.Errorf("%v", err)
	}
}
