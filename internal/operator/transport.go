package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/chartwright/chartwright/internal/operator/leader"
)

// requestDeadline is longer than the minute after which the API server ends a
// request that is no watch.
const requestDeadline = 90 * time.Second

// errNoAnswer ends a request that is never answered. Without it an action would
// block its release forever.
var errNoAnswer = fmt.Errorf("the API server did not answer within %s", requestDeadline)

// discoveryPath matches the requests of discovery. An API server may be behind a
// path of its own.
var discoveryPath = regexp.MustCompile(`/(api(/[^/]+)?|apis(/[^/]+(/[^/]+)?)?)$`)

// deadline limits the time of every request that is no watch.
type deadline struct {
	next  http.RoundTripper
	after time.Duration
	// stopping ends when the operator stops. It then ends requests of discovery,
	// because client-go passes them no context.
	stopping context.Context
}

// RoundTrip sends the request. The time counts until the response was read.
func (d deadline) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") != "" || request.URL.Query().Get("follow") != "" {
		return d.next.RoundTrip(request)
	}
	ctx, cancel := context.WithTimeoutCause(request.Context(), d.after, errNoAnswer)
	if discoveryPath.MatchString(request.URL.Path) {
		end, forget := cancel, context.AfterFunc(d.stopping, cancel)
		cancel = func() { forget(); end() }
	}
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

// Read reads until the deadline.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
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

// explain returns errNoAnswer if the deadline has passed, and not one of the
// caller.
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errNoAnswer) {
		return cause
	}
	return err
}

// maxWarnings bounds the warnings that are remembered. A warning may quote a
// field of an object, so that there may be any number of them.
const maxWarnings = 1000

// warningCode is the only code of warnings that Kubernetes defines.
const warningCode = 299

// warnings logs the warnings of the API server, such as of a deprecated version.
// The API server repeats a warning in every response; it is logged once for each
// resource.
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
	// Headers that cannot be parsed are left out.
	parsed, _ := utilnet.ParseWarningHeaders(headers)
	for _, header := range parsed {
		if header.Code == warningCode && header.Text != "" && w.isNew(warning{resource, header.Text}) {
			w.logger.Info("warning of the API server", "resource", resource.String(), "warning", header.Text)
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

// resourceIn returns the resource of a request's path, empty where it has none.
func resourceIn(path string) schema.GroupResource {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		return schema.GroupResource{}
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	return schema.GroupResource{Group: group, Resource: parts[0]}
}
