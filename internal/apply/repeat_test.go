package apply_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chartwright/chartwright/internal/apply"
)

// answer is an answer to a request: an error, or a response.
type answer struct {
	err        error
	code       int
	body       string
	retryAfter string
}

// answers is a transport that answers with each answer once, and then with the last one.
type answers struct {
	answers []answer
	// bodies are those of the requests.
	bodies []string
	closed int
}

type closing struct {
	io.Reader
	closed *int
}

func (c closing) Close() error { *c.closed++; return nil }

func (a *answers) RoundTrip(request *http.Request) (*http.Response, error) {
	body := ""
	if request.Body != nil {
		read, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		body = string(read)
	}
	next := a.answers[min(len(a.bodies), len(a.answers)-1)]
	a.bodies = append(a.bodies, body)
	if next.err != nil {
		return nil, next.err
	}
	response := &http.Response{StatusCode: next.code, Header: http.Header{}, Body: closing{strings.NewReader(next.body), &a.closed}}
	if next.retryAfter != "" {
		response.Header.Set("Retry-After", next.retryAfter)
	}
	return response, nil
}

func TestRepeats(t *testing.T) {
	const object = "/api/v1/namespaces/shop/configmaps/web"
	ok, cut, refused := answer{code: 200}, answer{err: io.ErrUnexpectedEOF}, answer{err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
	always := []answer{{code: 429, retryAfter: "1"}}
	tests := []struct {
		name, method, path string
		// outside reports that the request does not belong to an action.
		outside  bool
		answers  []answer
		requests int
		// after is the time until the answer.
		after time.Duration
		// code is the code of the answer, 0 for an error.
		code int
	}{
		{"no outage", "GET", object, false, []answer{ok}, 1, 0, 200},
		{"not found", "GET", object, false, []answer{{code: 404}}, 1, 0, 404},
		{"overload and lost connections", "PATCH", object, false, []answer{{code: 503}, cut, {code: 500}, ok}, 4, 350 * time.Millisecond, 200},
		{"outside of an action", "GET", object, true, []answer{cut}, 1, 0, 0},
		{"discovery outside of an action", "GET", "/prefix/apis/apps/v1", true, []answer{cut, ok}, 2, 50 * time.Millisecond, 200},
		{"a watch", "GET", object + "?watch=true", false, []answer{cut}, 1, 0, 0},
		{"Retry-After", "DELETE", object, false, []answer{{code: 429, retryAfter: "2"}, ok}, 2, 2 * time.Second, 200},
		{"the wanted time exceeds the limit", "GET", object, false, []answer{{code: 429, retryAfter: "60"}}, 1, 0, 429},
		{"a creation that may be processed", "POST", object, false, []answer{cut}, 1, 0, 0},
		{"a creation that is not sent", "POST", object, false, []answer{refused, {code: 429}, ok}, 3, 150 * time.Millisecond, 200},
		{"a dry run of a creation", "POST", object + "?dryRun=All", false, []answer{cut, ok}, 2, 50 * time.Millisecond, 200},
		{"a webhook that denies with 500", "PATCH", object, false, []answer{{code: 500, body: `{"message":"admission webhook \"a\" denied the request: no"}`}}, 1, 0, 500},
		{"a lasting outage", "GET", object, false, always, 12, 29800 * time.Millisecond, 429},
		{"an aggregated API server that always fails", "PATCH", object, false, []answer{{code: 503}}, 7, 3150 * time.Millisecond, 503},
		{"a webhook that always fails", "PATCH", object, false, []answer{{code: 500}}, 7, 3150 * time.Millisecond, 500},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				next := &answers{answers: test.answers}
				ctx := t.Context()
				if test.outside {
					ctx = context.Background()
				} else {
					ctx = apply.WithRepeats(ctx)
				}
				request, err := http.NewRequestWithContext(ctx, test.method, "http://server"+test.path, strings.NewReader("body"))
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				response, err := apply.Repeats{Next: next, Stopping: t.Context()}.RoundTrip(request)
				after := time.Since(began)
				got := 0
				if err == nil {
					got = response.StatusCode
					if err := response.Body.Close(); err != nil {
						t.Error(err)
					}
					if test.after > 5*time.Second && response.Header.Get("Retry-After") != "" {
						t.Error("client-go would repeat the request again")
					}
				}
				if got != test.code || after != test.after || len(next.bodies) != test.requests {
					t.Errorf("code %d (%v) after %s and %d requests, want %d after %s and %d requests", got, err, after, len(next.bodies), test.code, test.after, test.requests)
				}
				for i, body := range next.bodies {
					if body != "body" {
						t.Errorf("request %d has the body %q", i+1, body)
					}
				}
			})
		})
	}
}

// TestRepeats_EndWithAction: the end of an action ends the wait between two requests, and the
// responses are closed.
func TestRepeats_EndWithAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &answers{answers: []answer{{code: 429, retryAfter: "20"}}}
		ctx, end := context.WithTimeout(apply.WithRepeats(t.Context()), 3*time.Second)
		defer end()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server/api/v1/pods", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = apply.Repeats{Next: next, Stopping: t.Context()}.RoundTrip(request) //nolint:bodyclose // there is no response
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 3*time.Second || next.closed != 1 {
			t.Errorf("%v after %s, %d responses closed", err, time.Since(began), next.closed)
		}
	})
}
