package e2e

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// Metrics on a non-loopback address require the permission to read them, which
// the API server checks. Probes require no authentication.
func TestMetrics_RequirePermission(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Web")
	env.InstallCRD(kind)
	account := env.NewAccount()
	env.BindMetricsAuth(account)
	metrics, certificates := env.NewMetrics(), t.TempDir()
	first := metrics.Certificate(certificates)
	operator := env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("plain"))), Account: account,
		Args: append(metrics.Args(), "--metrics-secure", "--metrics-cert-path", certificates),
	}).Start()

	anyone, reader := env.NewUser(), env.NewUser()
	env.AllowScrape(reader.Account())
	for _, test := range []struct {
		who, token string
		status     int
		wantText   string
	}{
		{"nobody", "", http.StatusUnauthorized, "Unauthorized"},
		{"a user with an invalid token", "none", http.StatusUnauthorized, "Authentication failed"},
		{"a user without the permission", env.Token(anyone.Account()), http.StatusForbidden, "Authorization denied for user " + anyone.Account().User()},
		{"a reader", env.Token(reader.Account()), http.StatusOK, "chartwright_build_info{"},
	} {
		text := metrics.WaitScrape(test.token, first, test.status)
		if !strings.Contains(text, test.wantText) {
			t.Errorf("%s gets the text %q, want %q", test.who, text, test.wantText)
		}
		if test.status != http.StatusOK && strings.Contains(text, "chartwright_build_info") {
			t.Errorf("%s gets metrics", test.who)
		}
	}
	if response, err := http.Get("http://" + metrics.Address() + "/metrics"); err == nil {
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS the answer is %s", response.Status)
		}
		_ = response.Body.Close()
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if err := operator.Probe(t.Context(), path); err != nil {
			t.Errorf("probe without a token: %v", err)
		}
	}

	// A process serves a new certificate without a restart.
	second := metrics.Certificate(certificates)
	token := env.Token(reader.Account())
	metrics.WaitScrape(token, second, http.StatusOK)
	if _, _, err := metrics.Scrape(t.Context(), token, first); err == nil {
		t.Error("the old certificate is still served")
	}
	if !operator.Running() || strings.Count(operator.Log(), `"msg":"starting"`) != 1 {
		t.Error("the process was restarted")
	}
}

// Without a certificate the operator generates one. An account that is not
// allowed to create access reviews refuses all scrapes, logs the reason, and
// serves its kinds.
func TestMetrics_WithoutAccessReviewPermission(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Web")
	env.InstallCRD(kind)
	metrics := env.NewMetrics()
	operator := env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("plain"))),
		Missing: harness.MetricsAuth(),
		Args:    append(metrics.Args(), "--metrics-secure"),
	}).Start()
	reader := env.NewUser()
	env.AllowScrape(reader.Account())
	metrics.WaitScrape(env.Token(reader.Account()), nil, http.StatusUnauthorized)
	env.Wait("the log to contain the reason", func(context.Context) error {
		if !strings.Contains(operator.Log(), `cannot create resource \"tokenreviews\"`) {
			return errors.New("the reason is missing")
		}
		return nil
	})
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
}
