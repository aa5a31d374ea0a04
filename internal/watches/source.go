package watches

import (
	"regexp"
	"strings"
)

// Source is where 'chartwright add' has fetched a chart. The operator does not use it:
// 'chartwright update' fetches newer versions from there.
type Source struct {
	// Chart is the URL of a .tgz, oci://HOST/PATH, or the name of a chart in Repo.
	Chart string `json:"chart"`
	// Repo is the URL of a chart repository.
	Repo string `json:"repo,omitempty"`
	// Version is the version of the fetched chart.
	Version string `json:"version"`
	// Digest is the digest of the manifest in an OCI registry, else of the .tgz.
	Digest string `json:"digest"`
}

// sourceDigest matches the digests of charts.
var sourceDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// userInfo matches credentials in a URL.
var userInfo = regexp.MustCompile(`://[^/@]*@`)

// checkSource reports an incomplete source, and credentials in its URLs.
func (p *parser) checkSource(w *Watch) {
	if w.Source == nil {
		return
	}
	line, s := w.Lines["source"], w.Source
	remote := strings.Contains(s.Chart, "://")
	switch {
	case s.Chart == "":
		p.problemf(line, "source has no chart: expected a URL, oci://HOST/PATH, or the name of a chart in repo")
	case !remote && s.Repo == "":
		p.problemf(line, "source.chart is %q and there is no repo: add the URL of the chart's repository", s.Chart)
	case remote && s.Repo != "":
		p.problemf(line, "source.chart is a URL and there is a repo: remove one of them")
	}
	if s.Repo != "" && !strings.HasPrefix(s.Repo, "https://") && !strings.HasPrefix(s.Repo, "http://") {
		p.problemf(line, "source.repo: expected the URL of a chart repository, such as https://charts.example.com")
	}
	if userInfo.MatchString(s.Chart) || userInfo.MatchString(s.Repo) {
		p.problemf(line, "source contains credentials: remove them from the URL")
	}
	if s.Digest != "" && !sourceDigest.MatchString(s.Digest) {
		p.problemf(line, "source.digest is %q: expected sha256: and 64 hexadecimal digits", s.Digest)
	}
}
