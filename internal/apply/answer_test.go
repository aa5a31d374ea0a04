package apply_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/apply"
)

// What the API server answers is recorded from one, because the texts and details that
// separate two answers are not specified.
func TestAnswerOf_APIServer(t *testing.T) {
	of := namespace(t)
	mustApply(t, configMap(t, of, "v"))
	client := apiServer.client
	created := func(o apply.Object) error { _, err := client.Create(t.Context(), o); return err }
	elsewhere := of
	elsewhere.Namespace = "no-such-namespace"
	ended := namespace(t)
	if err := apiServer.plain.CoreV1().Namespaces().Delete(t.Context(), ended.Namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	unserved := object(t, of, aSecret)
	unserved.Mapping = &meta.RESTMapping{Resource: schema.GroupVersionResource{Group: "apps", Version: "v1beta9", Resource: "deployments"}, Scope: meta.RESTScopeNamespace}
	unservedGroup := object(t, of, aSecret)
	unservedGroup.Mapping = &meta.RESTMapping{Resource: schema.GroupVersionResource{Group: "nobody.example.com", Version: "v1", Resource: "deployments"}, Scope: meta.RESTScopeNamespace}
	absent := object(t, of, aSecret)
	absent.SetName("absent")
	invalid := object(t, of, aPort)
	invalid.SetName("-")
	untyped := object(t, of, "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: [1]}")
	unconverted := object(t, of, "{apiVersion: v1, kind: Pod, metadata: {name: c}, spec: {containers: [{name: c, image: c, resources: {requests: {cpu: lots}}}]}}")
	anonymous, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: apiServer.host}, &http.Client{Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
		request = request.Clone(request.Context())
		request.Header.Set("Impersonate-User", "nobody")
		return apiServer.transport.RoundTrip(request)
	})})
	if err != nil {
		t.Fatal(err)
	}
	get := func(o apply.Object) error {
		_, err := client.Metadata.Resource(o.Mapping.Resource).Namespace(o.GetNamespace()).Get(t.Context(), o.GetName(), metav1.GetOptions{})
		return err
	}
	applied := func(o apply.Object, options apply.Options) error {
		_, err := client.Apply(t.Context(), o, options)
		return err
	}
	_, forbidden := anonymous.CoreV1().Secrets(of.Namespace).Get(t.Context(), "absent", metav1.GetOptions{})
	for name, test := range map[string]struct {
		err  error
		want apply.Answer
	}{
		"a missing object":              {get(absent), apply.Gone},
		"a missing namespace":           {created(object(t, elsewhere, aSecret)), apply.Gone},
		"an unserved version":           {get(unserved), apply.Unserved},
		"an unserved group":             {get(unservedGroup), apply.Unserved},
		"an object that exists":         {created(configMap(t, of, "w")), apply.Conflict},
		"an object with another UID":    {applied(configMap(t, of, "w"), apply.Options{UID: "another"}), apply.Conflict},
		"an object that must not exist": {applied(configMap(t, of, "w"), apply.Options{}), apply.Conflict},
		"a terminating namespace":       {created(object(t, ended, aSecret)), apply.Terminating},
		"no permission":                 {forbidden, apply.Forbidden},
		"an invalid name":               {created(invalid), apply.Refused},
		"a field of another type":       {applied(untyped, apply.Options{}), apply.Refused},
		"an invalid quantity":           {applied(unconverted, apply.Options{}), apply.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			if answer := apply.AnswerOf(test.err); answer != test.want {
				t.Errorf("answer %d, want %d: %v", answer, test.want, test.err)
			}
		})
	}
}

func TestAnswerOf_Network(t *testing.T) {
	hangs := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/cut":
			connection, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				err = connection.Close()
			}
			if err != nil {
				t.Error(err)
			}
		case "/hangs":
			<-hangs
		}
	}))
	defer server.Close()
	defer close(hangs)
	get := func(ctx context.Context, url string) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			err = errors.Join(errors.New("no error"), response.Body.Close())
		}
		return err
	}
	ended, end := context.WithCancel(t.Context())
	end()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		err  error
		want apply.Answer
	}{
		"a refused connection": {get(t.Context(), "http://"+closed), apply.Unreachable},
		"a cut connection":     {get(t.Context(), server.URL+"/cut"), apply.Unreachable},
		"an unknown host":      {&net.DNSError{Err: "no such host"}, apply.Unreachable},
		"half a response":      {fmt.Errorf("read: %w", io.ErrUnexpectedEOF), apply.Unreachable},
		"an untrusted server":  {get(t.Context(), untrusted(t)), apply.Unreachable},
		"no answer in time":    {fmt.Errorf("get a: %w", timeout{}), apply.Unreachable},
		"a canceled caller":    {get(ended, server.URL+"/hangs"), apply.Ended},
	} {
		t.Run(name, func(t *testing.T) {
			if answer := apply.AnswerOf(test.err); answer != test.want {
				t.Errorf("answer %d, want %d: %v", answer, test.want, test.err)
			}
		})
	}
}

type timeout struct{}

func (timeout) Error() string { return "no answer" }

func (timeout) Timeout() bool { return true }

// untrusted returns the URL of a server whose certificate no client trusts.
func untrusted(t *testing.T) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// Users read the texts of errors in conditions: the URL of the API server says nothing to them.
func TestExplain_NamesRemedyInsteadOfURL(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	_, refused := client.CoreV1().Secrets("apps").Get(t.Context(), "web", metav1.GetOptions{})
	if refused == nil || !strings.Contains(refused.Error(), server.URL) {
		t.Fatalf("the error of client-go is %v", refused)
	}
	const webhook = `failed calling webhook "a.example.com": Post "https://hook.apps.svc:443/validate?timeout=10s": no endpoints`
	for _, test := range []struct {
		err  error
		want string
	}{
		{
			fmt.Errorf("store record web: %w", refused),
			"store record web: dial tcp " + strings.TrimPrefix(server.URL, "http://") + ": connect: connection refused. The API server does not respond: if this lasts, check its load and the network",
		},
		{
			fmt.Errorf("apply: %w", apierrors.NewInternalError(errors.New(webhook))),
			"apply: Internal error occurred: " + webhook + ". The API server, or a webhook or API server that it calls, is overloaded or fails: if this lasts, check their logs",
		},
		{errors.New("render the chart: no such value"), "render the chart: no such value"},
	} {
		if got := apply.Explain(test.err); got != test.want {
			t.Errorf("got  %q\nwant %q", got, test.want)
		}
	}
}

func TestAnswerOf_Errors(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	code := func(code int) error {
		return apierrors.NewGenericServerResponse(code, http.MethodPut, secrets, "a", "no details", 0, true)
	}
	said := func(code int, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(code), Message: message}} //nolint:gosec // a status code
	}
	terminating := apierrors.NewForbidden(secrets, "a", errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	foreign, overloaded := errors.New("rendered wrongly"), code(http.StatusServiceUnavailable)
	deadline, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for name, test := range map[string]struct {
		err       error
		want      apply.Answer
		retryable bool
	}{
		"no error":                             {nil, apply.None, false},
		"an error of a program":                {foreign, apply.None, false},
		"a deadline":                           {fmt.Errorf("wait: %w", deadline.Err()), apply.Ended, false},
		"401":                                  {code(http.StatusUnauthorized), apply.Unavailable, true},
		"408":                                  {code(http.StatusRequestTimeout), apply.Unavailable, true},
		"410":                                  {code(http.StatusGone), apply.Expired, true},
		"413":                                  {code(http.StatusRequestEntityTooLarge), apply.Refused, false},
		"429":                                  {code(http.StatusTooManyRequests), apply.Unavailable, true},
		"500":                                  {code(http.StatusInternalServerError), apply.Unavailable, true},
		"503, wrapped":                         {fmt.Errorf("get a: %w", overloaded), apply.Unavailable, true},
		"504":                                  {code(http.StatusGatewayTimeout), apply.Unavailable, true},
		"405":                                  {code(http.StatusMethodNotAllowed), apply.Unserved, false},
		"an unknown kind":                      {fmt.Errorf("build: %w", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "A"}}), apply.Unserved, false},
		"a failed discovery":                   {&discovery.ErrGroupDiscoveryFailed{}, apply.Unavailable, true},
		"a changed quota":                      {apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "q", foreign), apply.ConflictElsewhere, true},
		"a quota that exists":                  {apierrors.NewAlreadyExists(schema.GroupResource{Resource: "resourcequotas"}, "q"), apply.Conflict, false},
		"a denying webhook":                    {said(http.StatusInternalServerError, `admission webhook "a.example.com" denied the request: no`), apply.Refused, false},
		"an absent webhook":                    {said(http.StatusInternalServerError, `failed calling webhook "a.example.com": no endpoints`), apply.Unavailable, true},
		"a conversion webhook":                 {said(http.StatusInternalServerError, "failed to convert new object (a/b; example.com/v1, Kind=A) to proper version: conversion webhook failed: connection refused"), apply.Unavailable, true},
		"a quoted log of a pod":                {errors.New("the hook failed: dial db: connection reset by peer"), apply.None, false},
		"a terminating one, and a refused one": {errors.Join(terminating, code(http.StatusUnprocessableEntity)), apply.Terminating, false},
		"a used-up quota":                      {apierrors.NewForbidden(secrets, "a", errors.New("exceeded quota: q")), apply.Refused, false},
		"a sentinel and 503":                   {fmt.Errorf("%w: %w", foreign, overloaded), apply.Unavailable, true},
		"422 and 503":                          {errors.Join(code(http.StatusUnprocessableEntity), overloaded), apply.Refused, false},
		"a conflict and 503":                   {errors.Join(overloaded, code(http.StatusConflict)), apply.Conflict, false},
	} {
		t.Run(name, func(t *testing.T) {
			if answer := apply.AnswerOf(test.err); answer != test.want {
				t.Errorf("answer %d, want %d: %v", answer, test.want, test.err)
			}
			if apply.Retryable(test.err) != test.retryable {
				t.Errorf("retryable is %v", !test.retryable)
			}
		})
	}
}

// An apply that only another request about the same quota has prevented is repeated.
func TestApply_RepeatsAfterConflictElsewhere(t *testing.T) {
	of := namespace(t)
	refused := 0
	transport := roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodPatch || refused == 2 {
			return apiServer.transport.RoundTrip(request)
		}
		refused++
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"details":{"kind":"resourcequotas","name":"q"}}`
		return &http.Response{StatusCode: http.StatusConflict, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: request}, nil
	})
	client := apiServer.client
	var err error
	if client.Metadata, err = metadata.NewForConfigAndClient(&rest.Config{Host: apiServer.host, QPS: -1}, &http.Client{Transport: transport}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Apply(t.Context(), configMap(t, of, "v"), apply.Options{}); err != nil || refused != 2 {
		t.Errorf("%d attempts were refused, and then: %v", refused, err)
	}
}
