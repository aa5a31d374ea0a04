package operator

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// silent is a server that does not respond until the test ends, or responds only with a part
// of the body, depending on the path.
func silent(t *testing.T) *httptest.Server {
	t.Helper()
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/whole":
			_, _ = io.WriteString(w, "all of it")
			return
		case "/large":
			_, _ = io.WriteString(w, strings.Repeat("x", diagnosisBytes+1))
			return
		case "/part":
			_, _ = io.WriteString(w, "a part of it")
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(end); server.Close() })
	return server
}

func fetch(t *testing.T, ctx context.Context, url string, after time.Duration) (string, error) { //nolint:revive // the test comes first here
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := deadline{next: http.DefaultTransport, after: after}.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func TestDeadline_EndsUnansweredRequests(t *testing.T) {
	server := silent(t)
	for _, path := range []string{"/none", "/part"} {
		if _, err := fetch(t, t.Context(), server.URL+path, 50*time.Millisecond); !errors.Is(err, errNoAnswer) {
			t.Errorf("%s: %v, want %v", path, err, errNoAnswer)
		}
	}
	if text, err := fetch(t, t.Context(), server.URL+"/whole", time.Minute); err != nil || text != "all of it" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestDeadline_NotForWatches: watches have no deadline, and callers can cancel a request.
func TestDeadline_NotForWatches(t *testing.T) {
	server := silent(t)
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(200*time.Millisecond, func() { cancel(gone) })
	if _, err := fetch(t, ctx, server.URL+"/none?watch=true", 10*time.Millisecond); errors.Is(err, errNoAnswer) || err == nil {
		t.Errorf("a watch ended with %v", err)
	}
	if _, err := fetch(t, ctx, server.URL+"/none", time.Minute); errors.Is(err, errNoAnswer) || err == nil {
		t.Errorf("a request that its caller canceled ended with %v", err)
	}
}

// TestDiagnosis_ReadsNoLargeResponse: a tenant can create any number of objects with the labels
// of an object that is not ready.
func TestDiagnosis_ReadsNoLargeResponse(t *testing.T) {
	server := silent(t)
	if _, err := fetch(t, forDiagnosis(t.Context()), server.URL+"/large", time.Minute); err == nil || !strings.Contains(err.Error(), "has more than 4194304 bytes") {
		t.Errorf("error %v", err)
	}
	for path, ctx := range map[string]context.Context{"/large": t.Context(), "/whole": forDiagnosis(t.Context())} {
		if text, err := fetch(t, ctx, server.URL+path, time.Minute); err != nil || text == "" {
			t.Errorf("%s: %d bytes, error %v", path, len(text), err)
		}
	}
}
