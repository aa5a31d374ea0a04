package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
)

// Request is one request as the API server's audit log has it.
type Request struct {
	Verb       string
	RequestURI string
	User       struct{ Username string }
	// ImpersonatedUser is in whose name the request was made, if not in the
	// user's own.
	ImpersonatedUser struct{ Username string }
	ObjectRef        struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus   struct {
		Code    int
		Message string
	}
	// Annotations tell what was decided on the way.
	Annotations map[string]string
	// RequestReceivedTimestamp and StageTimestamp are when the API server got
	// the request and when it had answered.
	RequestReceivedTimestamp, StageTimestamp metav1.MicroTime
}

// String prints the request for messages.
func (r Request) String() string { return r.Verb + " " + r.RequestURI + " (" + r.ObjectRef.Name + ")" }

// Write tells whether the request is one that changes something. A review is a
// question.
func (r Request) Write() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) &&
		!strings.HasSuffix(r.ObjectRef.Resource, "reviews")
}

// waiting tells whether the request belongs to what goes on at all times: the
// watches and the leader election.
func (r Request) waiting() bool {
	return r.Verb == "watch" || r.ObjectRef.Resource == "leases"
}

// Audit is what a user asked of the API server since a moment.
type Audit struct {
	env    *Env
	user   string
	offset int64
}

// Audit begins to listen to a user. The log belongs to all tests, so it needs
// a user of the test's own, see NewAccount.
func (e *Env) Audit(user string) *Audit {
	e.t.Helper()
	return &Audit{env: e, user: user, offset: e.syncAudit()}
}

// Requests returns what the user asked for so far, without watches and leases.
func (a *Audit) Requests() []Request {
	a.env.t.Helper()
	a.env.syncAudit()
	var found []Request
	err := a.env.readAudit(a.offset, func(r Request, _ int64) {
		if r.User.Username == a.user && !r.waiting() {
			found = append(found, r)
		}
	})
	a.env.must(err)
	return found
}

// Waiting returns the watches that the user began so far, and what it asked for
// of the leader election.
func (a *Audit) Waiting() (watches, leases []Request) {
	a.env.t.Helper()
	a.env.syncAudit()
	a.env.must(a.env.readAudit(a.offset, func(r Request, _ int64) {
		switch {
		case r.User.Username != a.user:
		case r.ObjectRef.Resource == "leases":
			leases = append(leases, r)
		case r.Verb == "watch":
			watches = append(watches, r)
		}
	}))
	return watches, leases
}

// Writes returns what of it may have changed something, leaving out objects
// whose names contain the one given, if any.
func (a *Audit) Writes(except string) []Request {
	a.env.t.Helper()
	return slices.DeleteFunc(a.Requests(), func(r Request) bool {
		return !r.Write() || except != "" && strings.Contains(r.ObjectRef.Name, except)
	})
}

// Everybody returns what anybody asked for since the audit began, as far as it
// has to do with the test's namespace, without watches and leases.
func (a *Audit) Everybody() []Request {
	a.env.t.Helper()
	a.env.syncAudit()
	var found []Request
	a.env.must(a.env.readAudit(a.offset, func(r Request, _ int64) {
		if !r.waiting() {
			found = append(found, r)
		}
	}))
	return found
}

// syncAudit makes a request that nobody else makes, waits until the log has
// it, and returns its place: all that was answered before stands before it.
func (e *Env) syncAudit() (offset int64) {
	e.t.Helper()
	marker := "audit-" + rand.String(10)
	_, err := e.Typed.CoreV1().ConfigMaps(e.Namespace).Get(e.t.Context(), marker, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		e.t.Fatalf("a request for the audit log: %v", err)
	}
	e.Wait("the audit log to catch up", func(context.Context) error {
		found := false
		err := e.readAudit(e.auditFrom, func(r Request, end int64) {
			if r.ObjectRef.Name == marker {
				found, offset = true, end
			}
		})
		if err == nil && !found {
			err = errors.New("it does not hold the last request")
		}
		return err
	})
	return offset
}

// auditSize is the size of the audit log, 0 where there is none.
func auditSize() int64 {
	info, err := os.Stat(shared.auditLog())
	if err != nil {
		return 0
	}
	return info.Size()
}

// readAudit calls see with each request after an offset that has to do with the
// test, and where it ends.
func (e *Env) readAudit(offset int64, see func(r Request, end int64)) error {
	return readAudit(offset, e.Namespace, see)
}

// readAudit calls see with each request after an offset whose line has a text,
// and where it ends.
func readAudit(offset int64, with string, see func(r Request, end int64)) error {
	return readAuditLog(shared.auditLog(), offset, with, see)
}

func readAuditLog(log string, offset int64, with string, see func(r Request, end int64)) error {
	file, err := os.Open(log)
	if err != nil {
		return fmt.Errorf("%w: start the cluster with --audit-log %s", err, log)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // the rest of the line is being written
		}
		if err != nil {
			return err
		}
		offset += int64(len(line))
		// Most lines are of others: look before decoding.
		if !strings.Contains(string(line), with) {
			continue
		}
		var request Request
		if err := json.Unmarshal(line, &request); err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
		see(request, offset)
	}
}
