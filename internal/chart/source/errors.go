package source

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// Reason says in one word why a chart was not fetched, for conditions and metrics.
type Reason string

// Reasons of an Error.
const (
	// ReasonInvalid is for references and options that cannot work.
	ReasonInvalid Reason = "InvalidReference"
	// ReasonNotFound is for a file, chart or repository that does not exist.
	ReasonNotFound Reason = "NotFound"
	// ReasonVersionNotFound is for a chart that has no such version.
	ReasonVersionNotFound Reason = "VersionNotFound"
	// ReasonUnauthorized is for missing and rejected credentials.
	ReasonUnauthorized Reason = "Unauthorized"
	// ReasonUnreachable is for a network or a server that does not work.
	ReasonUnreachable Reason = "Unreachable"
	// ReasonTimeout is for a fetch that took too long.
	ReasonTimeout Reason = "Timeout"
	// ReasonTooLarge is for a download that exceeds the limit.
	ReasonTooLarge Reason = "TooLarge"
	// ReasonRefused is for addresses and redirects that are not allowed.
	ReasonRefused Reason = "Refused"
	// ReasonTLS is for certificates that are not trusted, and servers without TLS.
	ReasonTLS Reason = "TLS"
	// ReasonDigest is for a chart with another digest.
	ReasonDigest Reason = "DigestMismatch"
	// ReasonSignature is for a missing or wrong signature.
	ReasonSignature Reason = "SignatureInvalid"
	// ReasonChart is for a download that is not a chart, or only a part of a chart.
	ReasonChart Reason = "InvalidChart"
)

// Error says which chart was not fetched, why, and what to do. It contains no credentials.
type Error struct {
	// Reference is the chart's reference.
	Reference Reference
	Reason    Reason
	// Message says what was found. Advice says what to do.
	Message, Advice string
	// Err is the cause. Its text may contain the queries of URLs.
	Err error
}

func (e *Error) Error() string {
	text := fmt.Sprintf("chart %s: %s", e.Reference, e.Message)
	if e.Advice != "" {
		text += ": " + e.Advice
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// problem is an error of which only the reference is missing.
func problem(reason Reason, message, advice string, cause error) *Error {
	return &Error{Reason: reason, Message: message, Advice: advice, Err: cause}
}

// explain returns the Error for an error of a request to a host.
func (c *client) explain(host string, err error) *Error {
	if done, ok := errors.AsType[*Error](err); ok {
		return done
	}
	s := c.options.Settings
	if refused := c.refusal(host, err); refused != nil {
		return refused
	}
	switch code := status(err); {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return c.unauthorized(host, code, err)
	case code == http.StatusNotFound, errors.Is(err, errdef.ErrNotFound):
		return problem(ReasonNotFound, fmt.Sprintf("%s does not have it (404)", host), "check the spelling; private charts may need "+s.Credentials, err)
	case code != 0:
		return problem(ReasonUnreachable, fmt.Sprintf("%s answered with %s", host, (&statusError{code}).Error()), "try again later", err)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return c.unauthorized(host, http.StatusUnauthorized, err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return problem(ReasonUnreachable, fmt.Sprintf("%s closed the connection before the end of the download", host), "try again", err)
	}
	if mismatch, ok := errors.AsType[*net.DNSError](err); ok {
		return problem(ReasonUnreachable, fmt.Sprintf("no address was found for the host %s (%s)", mismatch.Name, lookupText(mismatch)), "check the name, the network and the proxy", err)
	}
	return problem(ReasonUnreachable, fmt.Sprintf("%s cannot be reached: %s", host, innermost(err)), "check the network and the proxy", err)
}

// lookupText returns why the lookup of a host failed. The text of the error has ports that
// change with each attempt.
func lookupText(err *net.DNSError) string {
	switch {
	case err.IsNotFound:
		return "no such host"
	case err.IsTimeout:
		return "the DNS server did not respond in time"
	default:
		return "the DNS server cannot be reached"
	}
}

// refusal returns the Error for a request that a limit or a setting has stopped.
func (c *client) refusal(host string, err error) *Error {
	s := c.options.Settings
	if address, ok := errors.AsType[*AddressError](err); ok {
		advice := "use a public host"
		if s.AllowHosts != "" {
			advice += ", or add the host to " + s.AllowHosts
		}
		return problem(ReasonRefused, "connection refused by policy: "+address.Error(), advice, err)
	}
	if redirect, ok := errors.AsType[*redirectError](err); ok {
		return problem(ReasonRefused, fmt.Sprintf("%s answered with %s, which is not followed", host, redirect.message), "use the URL at the end of the redirects", err)
	}
	if size, ok := errors.AsType[*SizeError](err); ok {
		return problem(ReasonTooLarge, size.Error(), raise("use a smaller chart", s.MaxBytes), err)
	}
	switch {
	case errors.Is(err, errPlainCredentials):
		return problem(ReasonRefused, err.Error(), "use https, or set "+s.PlainHTTP, err)
	case errors.Is(err, context.DeadlineExceeded):
		return problem(ReasonTimeout, fmt.Sprintf("the download from %s did not end within %s", host, c.options.Timeout), raise("try again", s.Timeout), err)
	case errors.Is(err, context.Canceled):
		return problem(ReasonTimeout, "the download was canceled", "", err)
	}
	return c.tlsError(host, err)
}

// raise returns the advice, with the setting of the limit if there is one.
func raise(advice, setting string) string {
	if setting != "" {
		advice += ", or raise " + setting
	}
	return advice
}

// tlsError returns the Error for a certificate that is not trusted, or for a server that
// uses no TLS.
func (c *client) tlsError(host string, err error) *Error {
	s := c.options.Settings
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	switch {
	case name:
		return problem(ReasonTLS, fmt.Sprintf("the certificate of %s is for another host", host), "use the host of the certificate", err)
	case untrusted:
		return problem(ReasonTLS, fmt.Sprintf("the certificate of %s is not trusted", host), fmt.Sprintf("set %s to the certificate of its issuer", s.CA), err)
	case plain, strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return problem(ReasonTLS, fmt.Sprintf("%s does not use TLS", host), fmt.Sprintf("use https, or set %s if the network is trusted", s.PlainHTTP), err)
	case alert, strings.Contains(err.Error(), "remote error: tls: "):
		return problem(ReasonTLS, fmt.Sprintf("%s rejected the TLS connection: %s", host, innermost(err)), "it may need a client certificate", err)
	}
	return nil
}

// unauthorized returns the Error for missing or rejected credentials.
func (c *client) unauthorized(host string, code int, err error) *Error {
	s := c.options.Settings
	message := fmt.Sprintf("%s requires credentials (%d)", host, code)
	advice := "set " + s.Credentials
	if c.options.withCredentials() || c.stored.Load() {
		message = fmt.Sprintf("%s rejected the credentials (%d)", host, code)
		advice = "check " + s.Credentials
	}
	if c.oci && s.Login != "" {
		advice += fmt.Sprintf(s.Login, host)
	}
	return problem(ReasonUnauthorized, message, advice, err)
}

// status returns the HTTP status of an error, or 0.
func status(err error) int {
	if own, ok := errors.AsType[*statusError](err); ok {
		return own.code
	}
	if response, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		return response.StatusCode
	}
	return 0
}

// innermost returns the text of the cause, without URLs.
func innermost(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if operation, ok := errors.AsType[*net.OpError](err); ok {
		err = operation.Err
	}
	return redact(err.Error())
}
