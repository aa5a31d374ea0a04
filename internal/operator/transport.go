package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/operator/leader"
)

// requestDeadline exceeds the minute after which the API server ends a request that is not
// a watch.
const requestDeadline = 90 * time.Second

// errNoAnswer ends a request without a response. Otherwise an action would block its
// release forever.
var errNoAnswer error = noAnswerError{}

type noAnswerError struct{}

// Error returns the text for the user.
func (noAnswerError) Error() string {
	return fmt.Sprintf("the API server did not answer within %s", requestDeadline)
}

// Timeout makes the error one of the network.
func (noAnswerError) Timeout() bool { return true }

// deadline limits the duration of every request that is not a watch.
type deadline struct {
	next  http.RoundTripper
	after time.Duration
}

// RoundTrip sends the request. The deadline includes reading the response.
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
	limit, _ := ctx.Value(responseLimit{}).(int)
	response.Body = &body{ReadCloser: response.Body, ctx: ctx, cancel: cancel, limit: limit}
	return response, nil
}

// responseLimit is the key of the largest size of a response in a context.
type responseLimit struct{}

// diagnosisBytes limits each response to a diagnosis. Tenants can create any number of objects
// with the labels of an object that is not ready.
const diagnosisBytes = 4 << 20

// forDiagnosis returns the context of the requests of a diagnosis.
func forDiagnosis(ctx context.Context) context.Context {
	return context.WithValue(ctx, responseLimit{}, diagnosisBytes)
}

// body ends the deadline when it is closed.
type body struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelFunc
	// limit is the number of bytes above which a read fails, 0 for none, and read the number of
	// bytes so far.
	limit, read int
}

// Read reads until the deadline.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.read += n; b.limit > 0 && b.read > b.limit {
		return 0, fmt.Errorf("the response of the API server has more than %d bytes", b.limit)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = explain(b.ctx, err)
	}
	return n, err
}

// Close ends the deadline.
func (b *body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// explain returns errNoAnswer if that deadline has passed, and otherwise err, such as for a
// deadline of the caller.
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errNoAnswer) {
		return cause
	}
	return err
}

// maxWarnings limits the stored warnings. Warnings can quote fields of objects, so that
// their number is unlimited.
const maxWarnings = 1000

// warningCode is the only warning code that Kubernetes defines.
const warningCode = 299

// warnings logs the warnings of the API server, for example about a deprecated version. The
// API server repeats a warning in every response; it is logged once per resource.
type warnings struct {
	logger logr.Logger

	mu     sync.Mutex
	logged map[warning]bool
}

type warning struct {
	resource schema.GroupResource
	text     string
}

func newWarnings(logger logr.Logger) *warnings {
	return &warnings{logger: logger, logged: map[warning]bool{}}
}

// wrapTransport returns a transport that logs the warnings in responses.
func (w *warnings) wrapTransport(next http.RoundTripper) http.RoundTripper {
	return leader.RoundTripFunc(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil && len(response.Header["Warning"]) > 0 {
			w.log(resourceIn(request.URL.Path), response.Header["Warning"])
		}
		return response, err
	})
}

func (w *warnings) log(resource schema.GroupResource, headers []string) {
	// Skip headers that cannot be parsed.
	parsed, _ := utilnet.ParseWarningHeaders(headers)
	for _, header := range parsed {
		if header.Code == warningCode && header.Text != "" && w.isNew(warning{resource, header.Text}) {
			w.logger.Info("API server warning", "resource", resource.String(), "warning", header.Text)
		}
	}
}

// isNew reports whether a warning was not logged before.
func (w *warnings) isNew(found warning) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.logged[found] || len(w.logged) == maxWarnings {
		return false
	}
	w.logged[found] = true
	return true
}

// resourceIn returns the resource in the path of a request, empty if there is none.
func resourceIn(path string) schema.GroupResource {
	gv, _, rest := apply.SplitPath(path)
	if len(rest) == 0 {
		return schema.GroupResource{}
	}
	return gv.WithResource(rest[0]).GroupResource()
}
