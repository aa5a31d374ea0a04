package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var pin = "sha256:" + strings.Repeat("a", 64)

func TestParse(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Join("local", "web"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		text, repo, version string
		want                Reference
		as                  string
	}{
		{text: "local/web", want: Reference{Path: "local/web"}, as: "local/web"},
		{text: "./web", want: Reference{Path: "./web"}, as: "./web"},
		{text: "../a/web", want: Reference{Path: "../a/web"}, as: "../a/web"},
		{text: "web-1.0.0.tgz", want: Reference{Path: "web-1.0.0.tgz"}, as: "web-1.0.0.tgz"},
		{text: "a/b/c", want: Reference{Path: "a/b/c"}, as: "a/b/c"},
		{text: "bitnami/nginx", version: "^1", want: Reference{Repo: "bitnami", Name: "nginx", Version: "^1"}, as: "bitnami/nginx ^1"},
		{text: "nginx", repo: "https://charts.example.com", want: Reference{Repo: "https://charts.example.com", Name: "nginx"}, as: "nginx of https://charts.example.com"},
		{text: "local", repo: "https://charts.example.com", want: Reference{Repo: "https://charts.example.com", Name: "local"}, as: "local of https://charts.example.com"},
		{text: "nginx", want: Reference{Name: "nginx"}, as: "nginx"},
		{text: "https://example.com/x.tgz?token=abc", want: Reference{URL: "https://example.com/x.tgz?token=abc"}, as: "https://example.com/x.tgz"},
		{text: "oci://r.example.com/charts/web", want: Reference{OCI: "r.example.com/charts/web"}, as: "oci://r.example.com/charts/web"},
		{text: "oci://r.example.com:5000/web:1.2.3+b", want: Reference{OCI: "r.example.com:5000/web", Version: "1.2.3+b"}, as: "oci://r.example.com:5000/web:1.2.3+b"},
		{text: "oci://r.example.com:5000/web", version: "1.x", want: Reference{OCI: "r.example.com:5000/web", Version: "1.x"}, as: "oci://r.example.com:5000/web:1.x"},
		{text: "oci://r.example.com/web", version: "^1", want: Reference{OCI: "r.example.com/web", Version: "^1"}, as: "oci://r.example.com/web ^1"},
		{text: "oci://r.example.com/web@" + pin, want: Reference{OCI: "r.example.com/web", Digest: pin}, as: "oci://r.example.com/web@" + pin},
		{text: "oci://[::1]:5000/web:1@" + pin, want: Reference{OCI: "[::1]:5000/web", Version: "1", Digest: pin}, as: "oci://[::1]:5000/web:1@" + pin},
	} {
		t.Run(tt.as, func(t *testing.T) {
			got, err := Parse(tt.text, tt.repo, tt.version)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Parse(%q): -want +got\n%s", tt.text, diff)
			}
			if got.String() != tt.as {
				t.Errorf("String() = %q, want %q", got, tt.as)
			}
		})
	}
}

func TestParse_RejectsInvalidReferences(t *testing.T) {
	for name, tt := range map[string]struct{ text, repo, version, want string }{
		"empty":                  {text: " ", want: "the reference is empty: want a folder"},
		"unknown scheme":         {text: "git://example.com/x", want: "unknown scheme git: want a folder"},
		"no host":                {text: "https:///x.tgz", want: "the URL has no host"},
		"credentials in a URL":   {text: "https://me:s3cret@example.com/x.tgz?k=s3cret", want: "chart https://example.com/x.tgz: the URL contains credentials: remove them"},
		"credentials in OCI":     {text: "oci://me:s3cret@example.com/x:1", want: "remove them"},
		"credentials in --repo":  {text: "x", repo: "https://me:s3cret@example.com", want: "chart x of https://example.com: the URL contains credentials"},
		"OCI with --repo":        {text: "oci://example.com/x", repo: "https://example.com", want: "cannot be combined"},
		"OCI as --repo":          {text: "x", repo: "oci://example.com/charts/", want: "want oci://example.com/charts/x as the chart"},
		"upper case path":        {text: "oci://example.com/Charts/x", want: "with a path in lower case"},
		"OCI without path":       {text: "oci://example.com", want: "want oci://HOST/PATH"},
		"short digest":           {text: "oci://example.com/x@sha256:12", want: `digest "sha256:12": want sha256: and 64 hexadecimal digits`},
		"two different versions": {text: "oci://example.com/x:1.0.0", version: "2.0.0", want: "the reference has version 1.0.0, but version 2.0.0 is requested"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(tt.text, tt.repo, tt.version)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("Parse(%q) = %v, want an error with %q", tt.text, err, tt.want)
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error contains the password: %v", err)
			}
		})
	}
}

func TestReference_ValidateWantsOnePlace(t *testing.T) {
	for _, r := range []Reference{{}, {Path: "a", URL: "https://example.com/a.tgz"}, {OCI: "example.com/a", Name: "a"}} {
		if err := r.Validate(); err == nil {
			t.Errorf("%+v: want an error", r)
		}
	}
}
