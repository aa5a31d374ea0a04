package watches_test

import (
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/watches"
)

func TestSource(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	for name, test := range map[string]struct{ source, want string }{
		"OCI":                     {source: "{chart: oci://r.example.com/web, version: 1.0.0, digest: " + digest + "}"},
		"URL":                     {source: "{chart: https://example.com/web.tgz, version: 1.0.0, digest: " + digest + "}"},
		"repository":              {source: "{chart: web, repo: https://charts.example.com, version: 1.0.0, digest: " + digest + "}"},
		"no chart":                {source: "{version: 1.0.0}", want: "source has no chart: expected a URL"},
		"name without repository": {source: "{chart: web}", want: `source.chart is "web" and there is no repo`},
		"URL with repository":     {source: "{chart: oci://r.example.com/web, repo: https://charts.example.com}", want: "remove one of them"},
		"name of a repository":    {source: "{chart: web, repo: stable}", want: "source.repo: expected the URL of a chart repository"},
		"credentials":             {source: "{chart: web, repo: 'https://me:s3cret@charts.example.com'}", want: "source contains credentials"},
		"short digest":            {source: "{chart: oci://r.example.com/web, digest: sha256:12}", want: `source.digest is "sha256:12"`},
		"unknown key":             {source: "{chart: oci://r.example.com/web, tag: x}", want: `unknown field "tag"`},
	} {
		t.Run(name, func(t *testing.T) {
			entries, err := watches.Parse("watches.yaml", []byte("- group: shop.example.com\n  version: v1\n  kind: Web\n  chart: charts/web\n  source: "+test.source+"\n"))
			switch {
			case test.want == "" && err != nil:
				t.Fatal(err)
			case test.want == "" && entries[0].Source.Digest != digest:
				t.Errorf("got %+v", entries[0].Source)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), "watches.yaml:5: "+test.want) && !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error contains the password: %v", err)
			}
		})
	}
}
