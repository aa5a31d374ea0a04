package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// requestDeadline is longer than the API server itself takes for a request
// that is no watch, which it ends after a minute.
const requestDeadline = 90 * time.Second

// errNoAnswer ends a request that is never answered. Without it an action would
// wait for ever, and its release with it.
var errNoAnswer = fmt.Errorf("the API server did not answer within %s", requestDeadline)

// deadline gives every request that is no watch a time to end by.
type deadline struct {
	next  http.RoundTripper
	after time.Duration
}

// RoundTrip sends the request. Its time counts until the answer is read whole.
func (d deadline) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") != "" || request.URL.Query().Get("follow") != "" {
		return d.next.RoundTrip(request)
	}
	ctx, cancel := context.WithTimeoutCause(request.Context(), d.after, errNoAnswer)
	response, err := d.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		err = explain(ctx, err)
		cancel()
		return nil, err
	}
	response.Body = &body{ReadCloser: response.Body, ctx: ctx, cancel: cancel}
	return response, nil
}

// body ends the deadline when it is closed.
type body struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelFunc
}

// Read reads on until the deadline.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = explain(b.ctx, err)
	}
	return n, err
}

// Close lets go of the deadline.
func (b *body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// explain says which of the two deadlines it was: ours, or the caller's.
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errNoAnswer) {
		return cause
	}
	return err
}
