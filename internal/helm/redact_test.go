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

// hideCanary is what a request with a secret of that value says.
func hideCanary(said string) string { return strings.ReplaceAll(said, canary, "…") }

// canaryRedactor redacts the secret, and parts of it where asked to.
type canaryRedactor struct{ NoOp }

func (canaryRedactor) Redact(text string) string { return hideCanary(text) }

func (canaryRedactor) RedactParts(text string) string {
	return strings.ReplaceAll(text, canary[:4], "…")
}

func TestWhatAnActionSaysHoldsNoSecret(t *testing.T) {
	log := &logBuffer{redact: hideCanary}
	log.printf("creating %s", canary)
	// What is cut off must not leave the half of a secret.
	hook := strings.Repeat("x", outputWidth-len("…")-5) + canary
	if _, err := log.output("", "", "hook").Write([]byte(hook + "\n")); err != nil {
		t.Fatal(err)
	}
	cause := fmt.Errorf("%w: spec.password is %s", chart.ErrInvalidValues, canary)
	for name, err := range map[string]error{"what Helm returned": cause, "a write that failed": nil} {
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
			t.Fatalf("%s: %v is no longer what it was", name, err)
		}
		if said := strings.Join(action.Log, "\n"); strings.Contains(said, canary[:4]) || !strings.HasPrefix(said, "creating …\nhook: xxx") {
			t.Errorf("%s: the log says %q", name, said)
		}
	}
	// What a parser quotes is known by less.
	parts := &run{kube: &kubeClient{ctx: t.Context(), log: log}, driver: &release.Driver{}, Request: Request{Redactor: canaryRedactor{}}}
	for _, test := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: %s", chart.ErrRender, canary[:5]), chart.ErrRender.Error() + ": …" + canary[4:5]},
		{fmt.Errorf("%w: %s", ErrConflict, canary[:5]), ErrConflict.Error() + ": " + canary[:5]},
	} {
		if got := parts.outcome(test.err); got.Error() != test.want || !errors.Is(got, errors.Unwrap(test.err)) {
			t.Errorf("%v, want %s", got, test.want)
		}
	}
	// Without secrets nothing is changed.
	r := &run{kube: &kubeClient{ctx: t.Context(), log: &logBuffer{}}, driver: &release.Driver{}, Request: Request{Redactor: NoOp{}}}
	if err := r.outcome(cause); err.Error() != cause.Error() {
		t.Errorf("%v", err)
	}
}
