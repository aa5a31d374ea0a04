package apply

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits of the time to repeat a request after its first failure. The second is for
// responses that say that a part of the API server fails, such as a webhook or an aggregated API
// server: other actions could run, and the status must name the cause soon.
const (
	repeatsFor     = 30 * time.Second
	repeatsForPart = 5 * time.Second
)

// Bounds of the time between repetitions, also of writes of release records. It doubles from the first to the second.
const (
	MinPause = 50 * time.Millisecond
	MaxPause = 5 * time.Second
)

type repeated struct{}

// WithRepeats returns the context of an action, whose requests Repeats repeats.
func WithRepeats(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeated{}, true)
}

// Repeats is a transport that repeats the requests of an action while the API server is
// overloaded or unreachable. Otherwise the action would fail, and the next attempt would run all
// hooks again. It also repeats discovery requests, because client-go gives them no context.
//
// A request that may have been processed is repeated only if it is a read, a dry run, a PATCH or
// a DELETE: those of this program have a precondition, or the same result twice. Client.Create
// repeats the creation of a hook, and the driver of records their writes.
type Repeats struct {
	Next http.RoundTripper
	// Stopping ends when the operator stops, and with it discovery requests.
	Stopping context.Context
}

// discoveryPath matches discovery requests. The URL of the API server may have a path
// prefix.
var discoveryPath = regexp.MustCompile(`/(api(/[^/]+)?|apis(/[^/]+(/[^/]+)?)?)$`)

// RoundTrip sends the request until it has an answer.
func (t Repeats) RoundTrip(request *http.Request) (*http.Response, error) {
	limit := repeatsFor
	if ctx := request.Context(); ctx.Done() == nil && discoveryPath.MatchString(request.URL.Path) {
		request, limit = request.WithContext(WithRepeats(t.Stopping)), repeatsForPart
	}
	if request.Context().Value(repeated{}) == nil || request.URL.Query().Has("watch") || request.URL.Query().Has("follow") {
		return t.Next.RoundTrip(request)
	}
	var until time.Time
	for delay := MinPause; ; delay = min(2*delay, MaxPause) {
		response, err := t.Next.RoundTrip(request)
		if !failed(response, err) || !repeatable(request, response, err) {
			return response, err
		}
		if response != nil && response.StatusCode != http.StatusTooManyRequests {
			limit = min(limit, repeatsForPart)
		}
		if until.IsZero() {
			until = time.Now().Add(limit)
		}
		again, ok := rewound(request)
		after := max(delay, retryAfter(response))
		if !ok || time.Now().Add(after).After(until) {
			if response != nil {
				// client-go repeats every response with this header ten times.
				response.Header.Del("Retry-After")
			}
			return response, err
		}
		if response != nil {
			_ = response.Body.Close()
		}
		if err := Pause(request.Context(), after); err != nil {
			return nil, err
		}
		request = again
	}
}

// failed reports whether the same request can succeed later.
func failed(response *http.Response, err error) bool {
	if err != nil {
		return AnswerOf(&url.Error{Err: err}) == Unreachable
	}
	if response.StatusCode < http.StatusBadRequest || answerOfStatus(metav1.Status{Code: int32(response.StatusCode)}) != Unavailable {
		return false
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return true
	}
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	return !isAboutContent(string(body))
}

// repeatable reports whether a failed request can be sent again, although it may have been
// processed.
func repeatable(request *http.Request, response *http.Response, err error) bool {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodDelete:
		return true
	}
	var connection *net.OpError
	return request.URL.Query().Has("dryRun") || errors.As(err, &connection) && connection.Op == "dial" ||
		response != nil && response.StatusCode == http.StatusTooManyRequests
}

// rewound returns the request with its body from the start.
func rewound(request *http.Request) (*http.Request, bool) {
	if request.Body == nil || request.Body == http.NoBody {
		return request, true
	}
	if request.GetBody == nil {
		return nil, false
	}
	body, err := request.GetBody()
	if err != nil {
		return nil, false
	}
	again := request.Clone(request.Context())
	again.Body = body
	return again, true
}

// retryAfter returns how long the API server wants a client to wait.
func retryAfter(response *http.Response) time.Duration {
	if response == nil {
		return 0
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return time.Duration(seconds) * time.Second
}

// Pause waits for a time. It returns the error of the context if that ends earlier.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
