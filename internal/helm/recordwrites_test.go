package helm

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/release"
)

// writesRecord reports whether a request stores a record.
func writesRecord(request *http.Request) bool {
	return strings.Contains(request.URL.Path, "/secrets") && (request.Method == http.MethodPost || request.Method == http.MethodPut)
}

// unavailable is a response of an API server that is overloaded.
func unavailable(request *http.Request) *http.Response {
	return &http.Response{
		StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
		Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","code":503}`)),
	}
}

// A short outage at any write of a record, or a lost response, changes neither the result of
// the action nor the number of hook runs.
func TestRecords_OutageAtEachWriteChangesNothing(t *testing.T) {
	for name, verb := range map[string]struct {
		before bool
		action func(*world, *chart.Chart) error
	}{
		"install": {false, func(w *world, c *chart.Chart) error {
			return w.helm.Install(w.Context(), w.request(c, "one", valuesOf("a=1")))
		}},
		"upgrade": {true, func(w *world, c *chart.Chart) error {
			return w.helm.Upgrade(w.Context(), w.request(c, "two", valuesOf("a=2", "b=2")))
		}},
		"uninstall": {true, func(w *world, c *chart.Chart) error {
			return w.helm.Uninstall(w.Context(), w.request(c, "", nil))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := hookedChart("pre-install", "pre-upgrade", "post-upgrade", "pre-delete").load(t)
			// run returns the results of the action, and the number of writes of records.
			run := func(answer func(request *http.Request, write int64, next http.RoundTripper) (*http.Response, error)) (result string, writes int64) {
				w := newWorld(t)
				if verb.before {
					w.must(w.helm.Install(w.Context(), w.request(c, "one", valuesOf("a=1"))))
				}
				var seen, hooks atomic.Int64
				w.net.armed.Store(&disturbance{answer: func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
					if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/configmaps") {
						hooks.Add(1)
					}
					if !writesRecord(request) {
						return next.RoundTrip(request)
					}
					return answer(request, seen.Add(1), next)
				}})
				err := verb.action(w, c)
				w.net.armed.Store(nil)
				return fmt.Sprintf("error %v, revisions %v, objects %v, %d hooks", err, w.statuses(), w.configMaps(), hooks.Load()), seen.Load()
			}
			want, writes := run(func(request *http.Request, _ int64, next http.RoundTripper) (*http.Response, error) {
				return next.RoundTrip(request)
			})
			if !strings.HasPrefix(want, "error <nil>") || writes < 2 {
				t.Fatalf("without an outage: %s, %d writes", want, writes)
			}
			for at := int64(1); at <= writes; at++ {
				got, _ := run(func(request *http.Request, write int64, next http.RoundTripper) (*http.Response, error) {
					if write >= at && write < at+3 {
						return unavailable(request), nil
					}
					return next.RoundTrip(request)
				})
				equal(t, fmt.Sprintf("an outage at write %d", at), want, got)
				got, _ = run(func(request *http.Request, write int64, next http.RoundTripper) (*http.Response, error) {
					response, err := next.RoundTrip(request)
					if write == at && err == nil {
						return nil, errors.Join(io.ErrUnexpectedEOF, response.Body.Close())
					}
					return response, err
				})
				equal(t, fmt.Sprintf("no response to write %d", at), want, got)
			}
		})
	}
}

// A repeated write never overwrites what another client has written meanwhile.
func TestRecords_RepeatedWriteIsNotForced(t *testing.T) {
	w := newWorld(t)
	c := hookedChart("pre-upgrade").load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	var refused bool
	w.net.armed.Store(&disturbance{answer: func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if refused || request.Method != http.MethodPut || !writesRecord(request) {
			return next.RoundTrip(request)
		}
		refused = true
		_, err := w.plain.CoreV1().Secrets(w.namespace).Patch(t.Context(), "sh.helm.release.v1.web.v2", types.MergePatchType, []byte(`{"metadata": {"labels": {"status": "failed"}}}`), metav1.PatchOptions{})
		return unavailable(request), err
	}})
	err := w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2")))
	w.net.armed.Store(nil)
	if !refused || !errors.Is(err, release.ErrStale) {
		t.Errorf("the error is %v", err)
	}
	if newest := w.newest(); newest.Revision != 2 || newest.Status != api.StatusFailed {
		t.Errorf("the newest record is %+v", newest)
	}
}

// A record that another client has created again is not deleted.
func TestRecords_ReplacedRecordIsNotDeleted(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	w.watch()
	secrets, name := w.plain.CoreV1().Secrets(w.namespace), release.SecretName("web", 1)
	secret, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
	w.must(err)
	if err := secrets.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	secret.UID, secret.ResourceVersion = "", ""
	again, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.helm.Uninstall(t.Context(), w.request(c, "", nil)); !errors.Is(err, release.ErrStale) {
		t.Errorf("the error is %v", err)
	}
	if live, err := secrets.Get(t.Context(), name, metav1.GetOptions{}); err != nil || live.UID != again.UID {
		t.Errorf("the record was deleted: %v", err)
	}
	w.watch()
	w.must(w.helm.Uninstall(t.Context(), w.request(c, "", nil)))
	equal(t, "the revisions", []string{}, w.statuses())
}
