package operator

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/chartwright/chartwright/internal/operator/leader"
)

// TestWarnings_LoggedOncePerResource: the API server repeats a warning in every response, and
// the operator logs it once per resource.
func TestWarnings_LoggedOncePerResource(t *testing.T) {
	var logged []string
	w := newWarnings(funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	var headers []string
	send := w.wrapTransport(leader.RoundTripFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{Header: http.Header{"Warning": headers}}, nil
	}))
	request := func(path string, warns ...string) {
		t.Helper()
		headers = warns
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := send.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if response.Body != nil {
			_ = response.Body.Close()
		}
	}
	const deprecated, field = `299 - "v1 Endpoints is deprecated"`, `299 - "unknown field"`
	for range 3 {
		request("/api/v1/namespaces/a/endpoints/web", deprecated)
		request("/api/v1/namespaces/b/endpoints/api", deprecated)
		request("/api/v1/endpoints", deprecated)
		request("/apis/apps/v1/namespaces/a/deployments/web", field, deprecated)
		request("/apis/batch/v1/jobs", field)
		request("/api/v1/namespaces/a")
		request("/version", `199 - "another code"`, "nonsense")
	}
	want := []string{
		`"level"=0 "msg"="API server warning" "resource"="endpoints" "warning"="v1 Endpoints is deprecated"`,
		`"level"=0 "msg"="API server warning" "resource"="deployments.apps" "warning"="unknown field"`,
		`"level"=0 "msg"="API server warning" "resource"="deployments.apps" "warning"="v1 Endpoints is deprecated"`,
		`"level"=0 "msg"="API server warning" "resource"="jobs.batch" "warning"="unknown field"`,
	}
	if !slices.Equal(logged, want) {
		t.Errorf("logged %q, want %q", logged, want)
	}

	for i := range 2 * maxWarnings {
		request("/api/v1/namespaces", fmt.Sprintf(`299 - "number %d"`, i))
	}
	if len(logged) != maxWarnings || len(w.logged) != maxWarnings {
		t.Errorf("%d warnings are logged and %d stored, want %d", len(logged), len(w.logged), maxWarnings)
	}
}
