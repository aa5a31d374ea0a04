package sources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/chartwright/chartwright/internal/chart/source"
)

// failure is a fetch that must fail, and what its error says.
type failure struct {
	text, repo, version string
	digest              string
	options             source.Options
	// change breaks the server.
	change func(http.ResponseWriter, *http.Request) bool
	reason source.Reason
	want   []string
}

// expectFailures runs fetches that must fail. Each error must name the reference and
// contain no credentials.
func expectFailures(t *testing.T, s *server, failures map[string]failure) {
	t.Helper()
	for name, tt := range failures {
		t.Run(name, func(t *testing.T) {
			s.change = tt.change
			reference, err := source.Parse(tt.text, tt.repo, tt.version)
			if err != nil {
				t.Fatal(err)
			}
			if tt.digest != "" {
				reference.Digest = tt.digest
			}
			_, err = source.Fetch(t.Context(), reference, tt.options)
			if err == nil {
				t.Fatal("want an error")
			}
			t.Log(err)
			if got := reasonOf(err); got != tt.reason {
				t.Errorf("reason %s, want %s", got, tt.reason)
			}
			for _, want := range append(tt.want, "chart "+reference.String()+": ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not contain %q", want)
				}
			}
			for _, secret := range []string{password, "wrong-password", "signature-of-the-url"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error contains %q", secret)
				}
			}
		})
	}
}

// reasonOf returns the reason of a failed fetch.
func reasonOf(err error) source.Reason {
	if found, ok := errors.AsType[*source.Error](err); ok {
		return found.Reason
	}
	return ""
}

// cut answers requests for blobs or archives with the first bytes only. It announces the
// full length, as a broken connection does.
func cut(suffix string, data []byte) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, suffix) {
			return false
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data[:len(data)/2])
		return true
	}
}

// replace answers requests for a file with other data.
func replace(suffix string, data []byte) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, suffix) {
			return false
		}
		_, _ = w.Write(data)
		return true
	}
}

// redirect answers requests for a file with a redirect to a signed URL.
func redirect(suffix, to string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, suffix) {
			return false
		}
		http.Redirect(w, r, to+"?X-Signature=signature-of-the-url", http.StatusTemporaryRedirect)
		return true
	}
}

// closedPort returns HOST:PORT of a server that has ended.
func closedPort(t *testing.T) string {
	t.Helper()
	s := start(t, http.NotFoundHandler(), false)
	s.Close()
	return s.host
}

func TestFetch_ErrorsOfRegistry(t *testing.T) {
	t.Parallel()
	charts := make([][]byte, 0, 7)
	for i := range 7 {
		charts = append(charts, pack(t, "web", fmt.Sprintf("1.%d.0", i)))
	}
	s, manifests := startRegistry(t, true, charts...)
	pushImage(t, s, "charts/image:1.0.0")
	inside := start(t, http.NotFoundHandler(), false)
	plain, _ := startRegistry(t, false, charts[0])
	s.private = true

	web, blob := "oci://"+s.host+"/charts/web", digest(charts[0])
	login := source.Options{CA: s.ca, Username: username, Password: password}
	with := func(change func(*source.Options)) source.Options {
		o := login
		change(&o)
		return o
	}
	none := "sha256:" + strings.Repeat("0", 64)
	expectFailures(t, s, map[string]failure{
		"wrong digest":      {text: web + ":1.0.0", digest: manifests[1], options: login, reason: source.ReasonDigest, want: []string{manifests[0], "want " + manifests[1]}},
		"unknown digest":    {text: web, digest: none, options: login, reason: source.ReasonNotFound, want: []string{"no chart with the digest " + none, "helm push"}},
		"wrong version":     {text: web + ":9.9.9", options: login, reason: source.ReasonVersionNotFound, want: []string{"no version matches 9.9.9", "newest: 1.6.0, 1.5.0, 1.4.0, 1.3.0, 1.2.0 and 2 more", "--chart-version"}},
		"wrong constraint":  {text: web, version: "^2", options: login, reason: source.ReasonVersionNotFound, want: []string{"no version matches ^2", "newest: 1.6.0"}},
		"unknown chart":     {text: "oci://" + s.host + "/charts/nope", options: login, reason: source.ReasonNotFound, want: []string{"has no chart charts/nope"}},
		"no credentials":    {text: web, options: source.Options{CA: s.ca}, reason: source.ReasonUnauthorized, want: []string{s.host + " requires credentials (401)", "--username and --password-stdin", "helm registry login " + s.host}},
		"wrong credentials": {text: web, options: with(func(o *source.Options) { o.Password = "wrong-password" }), reason: source.ReasonUnauthorized, want: []string{"rejected the credentials"}},
		"wrong credentials of a Secret": {
			text: web, reason: source.ReasonUnauthorized, want: []string{"rejected the credentials", "check spec.chart.secretRef"},
			options: source.Options{CA: s.ca, DockerConfig: bytes.ReplaceAll(dockerConfig(t, s), []byte("cmVhZGVyOnMzY3JldC1vZi10aGUtdGVzdA=="), []byte("bWU6d3JvbmctcGFzc3dvcmQ=")), Settings: source.Settings{Credentials: "spec.chart.secretRef"}},
		},
		"credentials of another registry": {text: web, options: source.Options{CA: s.ca, DockerConfig: dockerConfig(t, plain)}, reason: source.ReasonUnauthorized, want: []string{"requires credentials"}},
		"untrusted certificate":           {text: web, options: with(func(o *source.Options) { o.CA = nil }), reason: source.ReasonTLS, want: []string{"is not trusted", "--ca-file"}},
		"no TLS":                          {text: "oci://" + plain.host + "/charts/web", reason: source.ReasonTLS, want: []string{plain.host + " does not use TLS", "--plain-http"}},
		"no network":                      {text: "oci://" + closedPort(t) + "/charts/web", reason: source.ReasonUnreachable, want: []string{"cannot be reached", "connection refused"}},
		"unknown host":                    {text: "oci://registry.invalid/charts/web", reason: source.ReasonUnreachable, want: []string{"registry.invalid", "check the name, the network and the proxy"}},
		"truncated archive":               {text: web + ":1.0.0", options: login, change: cut(blob, charts[0]), reason: source.ReasonUnreachable, want: []string{"before the end of the download"}},
		"other archive":                   {text: web + ":1.0.0", options: login, change: replace(blob, charts[1]), reason: source.ReasonDigest, want: []string{"sent other data than the manifest " + manifests[0]}},
		"image":                           {text: "oci://" + s.host + "/charts/image:1.0.0", options: login, reason: source.ReasonChart, want: []string{"not that of a Helm chart"}},
		"too large":                       {text: web, options: with(func(o *source.Options) { o.MaxBytes = 700; o.Settings = source.Settings{MaxBytes: "--max-chart-bytes"} }), reason: source.ReasonTooLarge, want: []string{"exceeds 700 bytes", "--max-chart-bytes"}},
		"server error":                    {text: web, options: login, change: func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }, reason: source.ReasonUnreachable, want: []string{"502 Bad Gateway"}},
		"redirect to a private address": {
			text: web + ":1.0.0", options: with(func(o *source.Options) { o.PublicOnly, o.PlainHTTP, o.AllowHosts = true, false, []string{s.host} }),
			change: redirect(blob, strings.Replace(inside.URL, "http:", "https:", 1)), reason: source.ReasonRefused, want: []string{inside.host, "127.0.0.1", "not public"},
		},
		"redirect to plain HTTP": {text: web + ":1.0.0", options: login, change: redirect(blob, inside.URL), reason: source.ReasonRefused, want: []string{"redirect from https to http"}},
		"private registry": {
			text: web, options: with(func(o *source.Options) {
				o.PublicOnly = true
				o.Settings = source.Settings{AllowHosts: "--chart-hosts"}
			}),
			reason: source.ReasonRefused, want: []string{s.host + " has the address 127.0.0.1, which is not public", "--chart-hosts"},
		},
	})
	if len(inside.seen) > 0 {
		t.Errorf("the private server got credentials: %s", inside.seen)
	}
}

// pushImage pushes a container image.
func pushImage(t *testing.T, s *server, at string) {
	t.Helper()
	image, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.ParseReference(s.host + "/" + at)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference, image, remote.WithTransport(s.Client().Transport), remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func TestFetch_ErrorsOfRepository(t *testing.T) {
	t.Parallel()
	charts := [][]byte{pack(t, "web", "1.0.0"), pack(t, "web", "1.1.0")}
	s := startRepository(t, charts...)
	inside := start(t, http.NotFoundHandler(), true)
	s.private = true

	stable, archive := s.URL+"/stable", s.URL+"/stable/web-1.0.0.tgz"
	login := source.Options{CA: s.ca, Username: username, Password: password}
	html := []byte("<html>Please sign in</html>")
	expectFailures(t, s, map[string]failure{
		"wrong digest of a URL":       {text: archive, digest: digest(charts[1]), options: login, reason: source.ReasonDigest, want: []string{digest(charts[0]), "want " + digest(charts[1])}},
		"wrong digest":                {text: "web", repo: stable, version: "1.0.0", digest: digest(charts[1]), options: login, reason: source.ReasonDigest, want: []string{digest(charts[0]), "want " + digest(charts[1])}},
		"digest of the index differs": {text: "web", repo: stable, version: "1.0.0", options: login, change: replace("web-1.0.0.tgz", charts[1]), reason: source.ReasonDigest, want: []string{digest(charts[0]), digest(charts[1]), "index"}},
		"wrong version":               {text: "web", repo: stable, version: "3.0.0", options: login, reason: source.ReasonVersionNotFound, want: []string{"no version matches 3.0.0", "newest: 1.1.0, 1.0.0", "--chart-version"}},
		"wrong version of a URL":      {text: archive, version: "^2", options: login, reason: source.ReasonVersionNotFound, want: []string{"has version 1.0.0, want ^2"}},
		"unknown chart":               {text: "nope", repo: stable, options: login, reason: source.ReasonNotFound, want: []string{`no chart "nope"`, "only web"}},
		"no such file":                {text: stable + "/x.tgz", options: login, reason: source.ReasonNotFound, want: []string{"(404)"}},
		"no index":                    {text: "web", repo: s.URL + "/other", options: login, reason: source.ReasonNotFound, want: []string{s.URL + "/other/index.yaml does not exist"}},
		"not an index":                {text: "web", repo: stable, options: login, change: replace("index.yaml", html), reason: source.ReasonInvalid, want: []string{"is not the index of a chart repository"}},
		"no credentials":              {text: "web", repo: stable, options: source.Options{CA: s.ca}, reason: source.ReasonUnauthorized, want: []string{"requires credentials (401)", "--username"}},
		"wrong credentials":           {text: archive, options: source.Options{CA: s.ca, Username: username, Password: "wrong-password"}, reason: source.ReasonUnauthorized, want: []string{"rejected the credentials (401)"}},
		"untrusted certificate":       {text: archive, reason: source.ReasonTLS, want: []string{"is not trusted", "--ca-file"}},
		"no network":                  {text: "web", repo: "https://" + closedPort(t), reason: source.ReasonUnreachable, want: []string{"connection refused"}},
		"broken connection":           {text: archive, options: login, change: cut("web-1.0.0.tgz", charts[0]), reason: source.ReasonUnreachable, want: []string{"before the end of the download"}},
		"truncated archive":           {text: archive, options: login, change: replace("web-1.0.0.tgz", charts[0][:200]), reason: source.ReasonChart, want: []string{"truncated after 200 bytes"}},
		"page in place of an archive": {text: archive, options: login, change: replace("web-1.0.0.tgz", html), reason: source.ReasonChart, want: []string{"not the archive of a chart", "helm package"}},
		"too large":                   {text: archive, options: source.Options{CA: s.ca, Username: username, Password: password, MaxBytes: 100}, reason: source.ReasonTooLarge, want: []string{"exceeds 100 bytes"}},
		"redirect to a private address": {
			text: archive, options: source.Options{CA: s.ca, Username: username, Password: password, PublicOnly: true, AllowHosts: []string{s.host}},
			change: redirect("web-1.0.0.tgz", inside.URL+"/web.tgz"), reason: source.ReasonRefused, want: []string{inside.host, "127.0.0.1", "not public"},
		},
		"too many redirects":         {text: archive, options: login, change: redirect("web-1.0.0.tgz", "web-1.0.0.tgz"), reason: source.ReasonRefused, want: []string{"more than 10 redirects"}},
		"proxied redirect to a file": {text: archive, options: login, change: redirect("web-1.0.0.tgz", "file:///etc/passwd"), reason: source.ReasonRefused, want: []string{"scheme file"}},
	})
	if len(inside.seen) > 0 {
		t.Errorf("the private server got credentials: %s", inside.seen)
	}
}

func TestFetch_ErrorsOfFilesAndOptions(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	data := pack(t, "web", "1.0.0")
	truncated := filepath.Join(folder, "web-1.0.0.tgz")
	if err := os.WriteFile(truncated, data[:len(data)-40], 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := startRegistry(t, true)
	repository := startRepository(t)
	helm := helmFiles(t, s, repository)
	expectFailures(t, s, map[string]failure{
		"missing file":       {text: folder + "/nope.tgz", reason: source.ReasonNotFound, want: []string{"not found", "oci://HOST/PATH"}},
		"truncated archive":  {text: truncated, reason: source.ReasonChart, want: []string{"truncated"}},
		"folder of no chart": {text: folder, reason: source.ReasonChart, want: []string{"no Chart.yaml"}},
		"name alone":         {text: "nginx", options: source.Options{Helm: helm}, reason: source.ReasonInvalid, want: []string{"no such file or folder", "--repo"}},
		"unknown repository": {text: "bitnami/nginx", options: source.Options{Helm: helm}, reason: source.ReasonNotFound, want: []string{`no repository "bitnami" (only other, shop)`, "helm repo add bitnami URL"}},
		"half a certificate": {text: "oci://" + s.host + "/x", options: source.Options{Cert: []byte("x")}, reason: source.ReasonInvalid, want: []string{"both the certificate and its key"}},
		"no certificate":     {text: "oci://" + s.host + "/x", options: source.Options{CA: []byte("x")}, reason: source.ReasonInvalid, want: []string{"--ca-file: want certificates in PEM"}},
		"canceled":           {text: "oci://" + s.host + "/x", options: source.Options{CA: s.ca, Timeout: 1}, reason: source.ReasonTimeout, want: []string{"did not end within 1ns"}},
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := source.Fetch(ctx, source.Reference{OCI: s.host + "/x"}, source.Options{CA: s.ca}); reasonOf(err) != source.ReasonTimeout {
		t.Errorf("canceled context: got %v", err)
	}
}
