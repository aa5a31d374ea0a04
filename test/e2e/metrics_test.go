package e2e

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// Metrics beyond the machine are for those who may get them by the word of the
// API server, and nobody has to log in for probes.
func TestMetricsAreForThoseWhoMay(t *testing.T) {
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
		says       string
	}{
		{"nobody", "", http.StatusUnauthorized, "Unauthorized"},
		{"somebody with a token that is none", "none", http.StatusUnauthorized, "Authentication failed"},
		{"somebody", env.Token(anyone.Account()), http.StatusForbidden, "Authorization denied for user " + anyone.Account().User()},
		{"a reader", env.Token(reader.Account()), http.StatusOK, "chartwright_build_info{"},
	} {
		text := metrics.WaitScrape(test.token, first, test.status)
		if !strings.Contains(text, test.says) {
			t.Errorf("to %s it says %q, expected %q", test.who, text, test.says)
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
			t.Errorf("a probe needs a token: %v", err)
		}
	}

	// A certificate that is replaced is served by the same process.
	second := metrics.Certificate(certificates)
	token := env.Token(reader.Account())
	metrics.WaitScrape(token, second, http.StatusOK)
	if _, _, err := metrics.Scrape(t.Context(), token, first); err == nil {
		t.Error("the certificate from before is still served")
	}
	if !operator.Running() || strings.Count(operator.Log(), `"msg":"starting"`) != 1 {
		t.Error("that took another process")
	}
}

// Without a certificate the operator makes one; and an account that may not ask
// the API server who scrapes lets nobody in, says why, and serves its kinds.
func TestMetricsWithoutTheRightToAsk(t *testing.T) {
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
	env.Wait("the log to say why", func(context.Context) error {
		if !strings.Contains(operator.Log(), `cannot create resource \"tokenreviews\"`) {
			return errors.New("it does not")
		}
		return nil
	})
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
}
