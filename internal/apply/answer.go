package apply

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
)

// Answer is the meaning of the error of a request, see AnswerOf.
type Answer int

// The answers of the API server. Of joined errors, the last in this order counts: an error of
// this program, such as a sentinel, adds nothing to what the API server says.
const (
	// None is the answer of no error, and of an error of this program.
	None Answer = iota
	// Ended: the context of the caller has ended.
	Ended
	// Unreachable: the request has no response. It may have been processed.
	Unreachable
	// Unavailable: the API server, or a part of it, cannot process the request now: 401,
	// 408, 429 and 5xx. A part of it is an aggregated API server or a webhook.
	Unavailable
	// ConflictElsewhere: another client changed an object that the request also changes,
	// such as a ResourceQuota.
	ConflictElsewhere
	// Expired: a list or a watch must begin again.
	Expired
	// Gone: the object does not exist.
	Gone
	// Conflict: the object exists, or another client has changed, replaced or deleted it.
	Conflict
	// Unserved: the API server does not serve the version of the kind, or the kind.
	Unserved
	// Forbidden: no rule allows the request.
	Forbidden
	// Refused: the API server rejects the content of the request, for example by a schema,
	// an admission policy or a quota.
	Refused
	// Terminating: the namespace is being deleted.
	Terminating
)

const resourceQuotas = "resourcequotas"

// answerOf is AnswerOf for a request about the object.
func (o Object) answerOf(err error) Answer {
	answer := AnswerOf(err)
	if answer == ConflictElsewhere && o.Mapping.Resource.Resource == resourceQuotas {
		return Conflict
	}
	return answer
}

// Retryable reports whether the same request can succeed later without any change.
func Retryable(err error) bool {
	answer := AnswerOf(err)
	return Unreachable <= answer && answer <= Expired
}

// AnswerOf returns the meaning of an error, which may wrap and join others.
func AnswerOf(err error) Answer {
	for ; err != nil; err = errors.Unwrap(err) {
		switch e := err.(type) { //nolint:errorlint // the loop follows the chain
		case interface{ Unwrap() []error }:
			highest := None
			for _, part := range e.Unwrap() {
				highest = max(highest, AnswerOf(part))
			}
			return highest
		case apierrors.APIStatus:
			return answerOfStatus(e.Status())
		case *meta.NoKindMatchError, *meta.NoResourceMatchError:
			return Unserved
		case *discovery.ErrGroupDiscoveryFailed:
			return Unavailable
		case *net.OpError, *net.DNSError, *tls.CertificateVerificationError, tls.RecordHeaderError:
			return Unreachable
		case *url.Error:
			if answer := AnswerOf(e.Err); answer != None || !isConnectionLost(e.Err) {
				return answer
			}
			return Unreachable
		}
		switch {
		case err == context.Canceled, err == context.DeadlineExceeded: //nolint:errorlint // as above
			return Ended
		case err == io.ErrUnexpectedEOF, isTimeout(err): //nolint:errorlint // as above
			return Unreachable
		}
	}
	return None
}

// requestURL is what client-go adds to the error of a request to the API server. Other URLs, such
// as those of webhooks, name what fails.
var requestURL = regexp.MustCompile(`\b(Delete|Get|Head|Patch|Post|Put) "https?://[^/"]+/(api|apis|openapi|version)\b[^"]*": `)

// Explain returns the text of an error for users: without the URL of the API server, and with
// what to check if the API server is not available.
func Explain(err error) string {
	text := strings.TrimSuffix(requestURL.ReplaceAllString(err.Error(), ""), ".")
	switch AnswerOf(err) {
	case Unreachable:
		return text + ". The API server does not respond: if this lasts, check its load and the network"
	case Unavailable:
		return text + ". The API server, or a webhook or API server that it calls, is overloaded or fails: if this lasts, check their logs"
	default:
		return text
	}
}

// isConnectionLost reports whether a transport lost the connection. Some of these errors have
// no type. Only the error of a transport may be tested by its text: other texts may quote a
// program in a pod.
func isConnectionLost(err error) bool {
	text := err.Error()
	return utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err) || strings.HasPrefix(text, "http2: ") ||
		strings.HasPrefix(text, "stream error: ") || strings.Contains(text, "server closed idle connection")
}

// isTimeout reports whether an error that wraps none is a timeout.
func isTimeout(err error) bool {
	timeout, ok := err.(interface{ Timeout() bool })
	return ok && errors.Unwrap(err) == nil && timeout.Timeout()
}

// isAboutContent reports whether an error depends on the content of a request only, whatever
// its code is: 500 if a field has another type than its schema, and any code for a webhook. The
// message may also be the whole response.
func isAboutContent(message string) bool {
	return strings.Contains(message, "failed to create typed patch object") ||
		strings.Contains(message, "failed to convert new object") && !strings.Contains(message, "conversion webhook") ||
		strings.Contains(message, "admission webhook ") && strings.Contains(message, "denied the request")
}

// missingRule matches the message of the API server if no rule allows a request. Refusals by
// admission, quotas or the escalation check have other messages, and rules would not help.
var missingRule = regexp.MustCompile(`User "[^"]*" cannot \S+ (resource|path) "`)

func answerOfStatus(status metav1.Status) Answer {
	var details metav1.StatusDetails
	if status.Details != nil {
		details = *status.Details
	}
	has := func(is func(metav1.StatusCause) bool) bool { return slices.ContainsFunc(details.Causes, is) }
	switch {
	case has(func(c metav1.StatusCause) bool { return c.Type == corev1.NamespaceTerminatingCause }):
		return Terminating
	case isAboutContent(status.Message):
		return Refused
	// A path that is not served has no Status in the body, or one that names nothing.
	case status.Code == http.StatusNotFound && details.Name != "" &&
		!has(func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse }):
		return Gone
	// The precondition of an apply, see Options.UID.
	case status.Code == http.StatusUnprocessableEntity && has(func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" }):
		return Conflict
	case status.Reason == metav1.StatusReasonConflict && details.Kind == resourceQuotas:
		return ConflictElsewhere
	case status.Code == http.StatusForbidden && missingRule.MatchString(status.Message):
		return Forbidden
	}
	switch status.Code {
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return Unserved
	case http.StatusConflict:
		return Conflict
	case http.StatusGone:
		return Expired
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return Unavailable
	}
	switch {
	case status.Code >= http.StatusInternalServerError:
		return Unavailable
	case status.Code >= http.StatusBadRequest:
		return Refused
	}
	return None
}
