package apply_test

import (
	"io"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/chartwright/chartwright/internal/apply"
)

// TestCreate_RepeatsLostRequests: a creation whose response is lost is repeated, and an object
// that an earlier request of the same call has created is the result. An object of another call
// is not.
func TestCreate_RepeatsLostRequests(t *testing.T) {
	unavailable := func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody}, nil
	}
	cut := func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
	for _, test := range []struct {
		name   string
		answer func(*http.Request) (*http.Response, error)
		// processed reports that the API server processes the request whose response is lost.
		processed, exists bool
		requests          int
	}{
		{"processed, connection lost", cut, true, false, 1},
		{"not processed, connection lost", cut, false, false, 2},
		{"processed, unavailable", unavailable, true, false, 1},
		{"an object of another call", cut, false, true, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			of := namespace(t)
			hook := object(t, of, aSecret)
			hook.Unstructured = apply.PrepareHook(parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {chartwright.dev/applied: rendered}}}"), of)
			hook.SetNamespace(of.Namespace)
			if test.exists {
				if _, err := apiServer.client.Create(t.Context(), hook); err != nil {
					t.Fatal(err)
				}
			}
			requests := 0
			client := apiServer.client
			var err error
			client.Dynamic, err = dynamic.NewForConfigAndClient(apiServer.env.Config, &http.Client{Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
				if request.Method != http.MethodPost {
					return apiServer.transport.RoundTrip(request)
				}
				requests++
				if requests > 1 {
					return apiServer.transport.RoundTrip(request)
				}
				if test.processed {
					response, err := apiServer.transport.RoundTrip(request)
					if err != nil {
						return nil, err
					}
					_ = response.Body.Close()
				}
				return test.answer(request)
			})})
			if err != nil {
				t.Fatal(err)
			}
			created, err := client.Create(t.Context(), hook)
			live, unread := apiServer.plain.CoreV1().Secrets(of.Namespace).Get(t.Context(), "a", metav1.GetOptions{})
			switch {
			case unread != nil:
				t.Fatal(unread)
			case test.exists && apply.AnswerOf(err) != apply.Conflict:
				t.Errorf("%v, want a conflict", err)
			case !test.exists && (err != nil || created.GetUID() != live.UID):
				t.Errorf("%v, want the object that was created", err)
			}
			if requests != test.requests {
				t.Errorf("%d requests, want %d", requests, test.requests)
			}
		})
	}
}
