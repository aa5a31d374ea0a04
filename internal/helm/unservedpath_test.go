package helm

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/release"
)

// TestUnservedPath_IsNotAnAbsentObject: the API server answers one request with a 404 page, as
// for a path that it does not serve. The attempt fails with an error that is reported, and the
// next attempt does everything.
func TestUnservedPath_IsNotAnAbsentObject(t *testing.T) {
	c := mapsChart().load(t)
	for name, test := range map[string]struct {
		before  func(*world, *Request)
		action  func(*Client, context.Context, Request) error
		request string
		done    func(*world) bool
	}{
		"the record, for its marks": {
			func(_ *world, r *Request) { r.Marks = release.Marks{Reconcile: "request"} },
			(*Client).Mark, "PATCH /secrets/sh.helm",
			func(w *world) bool { return w.newest().Marks.Reconcile == "request" },
		},
		"the record, for its annotations": {
			func(w *world, _ *Request) {
				w.patchRecord("v1", `{"metadata": {"annotations": null}}`)
			},
			(*Client).Restore, "PATCH /secrets/sh.helm",
			func(w *world) bool { return !w.newest().Stripped() },
		},
		"a damaged record": {
			func(w *world, _ *Request) {
				w.patchRecord("v1", `{"data": {"release": "ZGFtYWdlZA=="}}`)
			},
			func(c *Client, ctx context.Context, r Request) error {
				if err := c.Upgrade(ctx, r); !errors.Is(err, release.ErrStale) {
					return err
				}
				return nil
			},
			"DELETE /secrets/sh.helm",
			func(w *world) bool { w.watch(); return len(w.index.History(w.namespace, "web")) == 0 },
		},
		"the namespace, when it is read": {
			nil, (*Client).Uninstall, "GET /namespaces/", (*world).namespaceDeleted,
		},
		"the namespace, when it is deleted": {
			nil, (*Client).Uninstall, "DELETE /namespaces/", (*world).namespaceDeleted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.moveToNewNamespace()
			w.must(w.helm.Install(t.Context(), w.inNewNamespace(c)))
			r := w.inNewNamespace(c)
			if test.before != nil {
				test.before(w, &r)
			}
			w.watch()
			method, path, _ := strings.Cut(test.request, " ")
			hits := 0
			w.net.armed.Store(&disturbance{answer: func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
				at := "/namespaces/" + w.namespace
				matches := strings.Contains(request.URL.Path, at+path)
				if path == "/namespaces/" {
					matches = strings.HasSuffix(request.URL.Path, at)
				}
				if hits > 0 || request.Method != method || !matches {
					return next.RoundTrip(request)
				}
				hits++
				return response(request, http.StatusNotFound, "text/plain", []byte("404 page not found\n")), nil
			}})
			err := test.action(w.helm, t.Context(), r)
			if err == nil || errors.Is(err, release.ErrStale) || hits != 1 {
				t.Fatalf("%d requests failed, and the error is %v", hits, err)
			}
			w.watch()
			if test.done(w) {
				t.Error("done in the first attempt")
			}
			w.must(test.action(w.helm, t.Context(), r))
			if !test.done(w) {
				t.Error("not done in the second attempt")
			}
		})
	}
}

// An uninstall must not use the operator's own permissions because the service account of the
// hooks cannot be read.
func TestUnservedPath_IsNotAnAbsentServiceAccount(t *testing.T) {
	w := newWorld(t)
	r := w.request(mapsChart().load(t), "one", nil)
	r.ServiceAccount = "deployer"
	if !w.helm.accountGone(t.Context(), r) {
		t.Error("the service account does not exist")
	}
	w.net.armed.Store(&disturbance{answer: func(request *http.Request, _ http.RoundTripper) (*http.Response, error) {
		return response(request, http.StatusNotFound, "text/plain", []byte("404 page not found\n")), nil
	}})
	if w.helm.accountGone(t.Context(), r) {
		t.Error("a path that is not served counts as a service account that does not exist")
	}
}
