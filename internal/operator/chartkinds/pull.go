package chartkinds

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/source"
	"github.com/chartwright/chartwright/internal/chartkind"
	"github.com/chartwright/chartwright/internal/operator/chartcache"
)

// Limits of one download.
const (
	pullTimeout  = time.Minute
	maxArchive   = 32 << 20
	maxIndex     = 8 << 20
	maxRedirects = 5
)

// settings are the names of the options in messages.
var settings = source.Settings{
	Credentials: "spec.chart.secretRef", CA: secretKeyCA + " in the Secret of spec.chart.secretRef", PlainHTTP: "http://HOST in " + FlagHosts,
	Version: "spec.chart.version", Digest: "spec.chart.digest", Repo: "spec.chart.repo", Keyring: FlagKeyring, AllowHosts: FlagHosts,
}

// version is a chart with the entry for it.
type version struct {
	// entry is what the cache stores, and archive the chart's .tgz, nil if it is stored.
	entry   chartcache.Entry
	archive []byte
	kind    catalog.Kind
	chart   chartkind.ServedChart
}

// served is what the operator knows about one ChartKind. Only the worker that reconciles
// the ChartKind uses it.
type served struct {
	uid types.UID
	// group is the kind of the ChartKind. The lock of the Controller guards it.
	group schema.GroupKind

	// current is served since the time changed. next replaces it if nothing prevents that.
	current, next *version
	changed       time.Time

	// tried is the digest of the spec of the last pull.
	tried            string
	pulled, verified chartkind.Finding
	// invalid is why the chart of the last pull cannot be served, with the reason for the
	// condition.
	invalid, invalidReason string
	// last is the chart of the last successful pull, without its archive, lastInvalid why it
	// cannot be served, and lastSpec the digest of the spec.
	last                  source.Chart
	lastInvalid, lastSpec string
	failures              int
	// due is when to check again.
	due time.Time

	// crd is the last result of the installation of the CRD, for what crdFor identifies.
	// crdDue is when to try again.
	crd    chartkind.Finding
	crdFor string
	crdDue time.Time
	// crdServes: the kind can be served with the CRD as it is.
	crdServes bool

	// conflicts: another ChartKind or a file had the kind at the last reconciliation.
	conflicts bool

	// hinted is the digest of the leader that made a standby check early.
	hinted string
}

// newest returns the chart that was pulled last and can be loaded, nil without one.
func (s *served) newest() *version {
	if s.next != nil {
		return s.next
	}
	return s.current
}

// pull checks for a newer chart if the interval has passed or the spec has changed. It
// keeps what is served if the check fails.
func (c *Controller) pull(ctx context.Context, ck chartkind.ChartKind, spec string, s *served) {
	if s.tried == spec && c.Now().Before(s.due) {
		if !c.behind(ck, s) {
			return
		}
		s.hinted = ck.Status.Chart.Digest
	}
	if s.tried != spec && s.tried != "" {
		s.verified = chartkind.Undecided(chartkind.ReasonUnknown, "the chart of the changed spec was not pulled yet")
	}
	s.tried = spec
	turn := c.newTurn()
	defer turn.end()
	result, err := c.fetch(ctx, ck, s.known(spec), turn.await)
	if ctx.Err() != nil {
		s.tried = ""
		return
	}
	if err != nil {
		s.failures++
		s.due = c.Now().Add(jitter(retryDelay(s.failures)))
		s.notPulled(err)
		c.Metrics.ChartPulled(ck.Name, OutcomeFailed)
		c.Logger.Info("chart not pulled", "chartKind", ck.Name, "error", err.Error())
		return
	}
	c.Metrics.ChartPulled(ck.Name, c.pulled(ck, spec, s, result))
	s.failures, s.due = 0, c.Now().Add(jitter(ck.Spec.Chart.CheckInterval()))
}

// known returns the digest of the chart of the last pull, empty if the chart must be pulled
// again.
func (s *served) known(spec string) string {
	newest := s.newest()
	loaded := newest != nil && newest.entry.Spec == spec && newest.entry.Digest == s.last.Pinned()
	if s.lastSpec != spec || !loaded && s.lastInvalid == "" {
		return ""
	}
	return s.last.Pinned()
}

// pulled records a chart that was pulled, and loads a chart that is not known. It returns
// the outcome.
func (c *Controller) pulled(ck chartkind.ChartKind, spec string, s *served, result source.Chart) string {
	if result.Unchanged {
		result = s.last
	}
	s.pulled = chartkind.True(chartkind.ReasonPulled, fmt.Sprintf("%s of %s", result.Version, result.Location))
	s.verified = verified(ck.Spec.Chart, c.Keyring, result)
	s.invalid = ""
	outcome := OutcomeUnchanged
	switch newest := s.newest(); {
	case newest != nil && newest.entry.Spec == spec && newest.entry.Digest == result.Pinned():
		c.Cache.Used(newest.entry.Archive)
	case s.lastInvalid != "" && s.known(spec) == result.Pinned():
		outcome, s.invalid = OutcomeInvalid, s.lastInvalid
	default:
		outcome = OutcomeNew
		if err := c.prepare(ck, spec, s, result); err != nil {
			outcome, s.invalid, s.invalidReason = OutcomeInvalid, err.Error(), chartkind.ReasonInvalidChart
			if _, refused := errors.AsType[notAllowedError](err); refused {
				s.invalidReason = chartkind.ReasonNotAllowed
			}
			c.Logger.Info("chart not served", "chartKind", ck.Name, "version", result.Version, "error", err.Error())
		}
	}
	result.Archive = nil
	s.last, s.lastSpec, s.lastInvalid = result, spec, s.invalid
	return outcome
}

// turn limits how many charts are downloaded and loaded at a time, and thus the memory.
type turn struct {
	slots chan struct{}
	has   bool
}

func (c *Controller) newTurn() *turn { return &turn{slots: c.loading} }

// await waits until no other chart is downloaded or loaded.
func (t *turn) await(ctx context.Context) error {
	if t.has {
		return nil
	}
	select {
	case t.slots <- struct{}{}:
		t.has = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *turn) end() {
	if t.has {
		<-t.slots
	}
}

// behind reports whether the leader serves another chart than this standby, so that the
// standby checks before its interval has passed.
func (c *Controller) behind(ck chartkind.ChartKind, s *served) bool {
	leads := ck.Status.Chart
	return !c.leads() && s.failures == 0 && leads != nil && s.current != nil && s.next == nil && s.invalid == "" &&
		leads.Digest != s.current.chart.Digest && s.hinted != leads.Digest
}

// firstRetry is the delay after the first failure, and lastRetry the longest one.
const (
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
)

// retryDelay returns the delay after a number of failures. It does not depend on the
// interval, so that many registries that time out leave time for the others.
func retryDelay(failures int) time.Duration {
	return min(firstRetry<<min(failures-1, 10), lastRetry)
}

// jitter shortens a delay by at most a fifth, so that ChartKinds do not check at the same
// time.
func jitter(delay time.Duration) time.Duration {
	return delay - time.Duration(rand.Int64N(int64(delay/5)+1)) //nolint:gosec // not a secret
}

// notPulled records the error of a pull.
func (s *served) notPulled(err error) {
	text := err.Error()
	s.pulled = chartkind.False(chartkind.ReasonPullFailed, text)
	var problem *source.Error
	if !errors.As(err, &problem) {
		return
	}
	s.pulled.Reason = string(problem.Reason)
	switch problem.Reason {
	case source.ReasonDigest:
		s.verified = chartkind.False(chartkind.ReasonDigestMismatch, text)
	case source.ReasonSignature:
		s.verified = chartkind.False(chartkind.ReasonProvenanceInvalid, text)
	default:
	}
}

// verified returns the finding about a chart that was pulled.
func verified(from chartkind.Chart, keyring Keyring, result source.Chart) chartkind.Finding {
	switch {
	case keyring.Path != "":
		return chartkind.True(chartkind.ReasonProvenanceVerified, "signed by "+result.SignedBy)
	case from.Digest != "":
		return chartkind.True(chartkind.ReasonDigestMatches, "the chart has the digest of spec.chart.digest")
	default:
		return chartkind.Undecided(chartkind.ReasonNotRequired, "neither spec.chart.digest nor "+FlagKeyring+" is set")
	}
}

// fetch downloads the chart of a ChartKind. The error contains no credentials.
func (c *Controller) fetch(ctx context.Context, ck chartkind.ChartKind, known string, beforeDownload func(context.Context) error) (source.Chart, error) {
	from := ck.Spec.Chart
	plain, err := c.plainHTTP(from)
	if err != nil {
		return source.Chart{}, err
	}
	options, err := c.credentials(ctx, from)
	if err != nil {
		return source.Chart{}, err
	}
	options.PlainHTTP, options.Keyring, options.PublicOnly, options.AllowHosts = plain, c.Keyring.Path, true, c.allowedHosts()
	options.Known, options.BeforeDownload, options.Settings = known, beforeDownload, settings
	options.MaxBytes, options.MaxIndexBytes, options.MaxRedirects, options.Timeout = maxArchive, maxIndex, maxRedirects, pullTimeout
	result, err := c.Fetch(ctx, from.Reference(), options)
	if err != nil {
		return source.Chart{}, redactError(options, err)
	}
	return result, nil
}

// plainHTTP reports whether the host of a chart may be used without TLS. It returns an
// error for another host with http.
func (c *Controller) plainHTTP(from chartkind.Chart) (bool, error) {
	host := from.Reference().Host()
	if slices.ContainsFunc(c.Hosts, func(listed string) bool { return strings.EqualFold(listed, plainScheme+host) }) {
		return true, nil
	}
	for field, text := range map[string]string{"url": from.URL, "repo": from.Repo} {
		if parsed, err := url.Parse(text); err == nil && parsed.Scheme == "http" {
			return false, fmt.Errorf("spec.chart.%s: plain HTTP is not allowed for %s: use https, or add %s%s to %s of the operator", field, host, plainScheme, host, FlagHosts)
		}
	}
	return false, nil
}

// plainScheme marks a host of FlagHosts that may be used without TLS.
const plainScheme = "http://"

// allowedHosts returns the hosts that may have private addresses.
func (c *Controller) allowedHosts() []string {
	hosts := make([]string, len(c.Hosts))
	for i, host := range c.Hosts {
		hosts[i] = strings.TrimPrefix(host, plainScheme)
	}
	return hosts
}
