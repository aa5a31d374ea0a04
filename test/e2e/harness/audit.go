package harness

import (
	"bufio"
	"bytes"
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
	"k8s.io/apimachinery/pkg/util/wait"
)

// Request is a request in the API server's audit log.
type Request struct {
	Verb       string
	RequestURI string
	User       struct{ Username string }
	// ImpersonatedUser is set if the request impersonates another user.
	ImpersonatedUser struct{ Username string }
	ObjectRef        struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus   struct {
		Code    int
		Message string
	}
	// Annotations are those of the audit event, for example the decision of the
	// authorizer.
	Annotations map[string]string
	// RequestReceivedTimestamp and StageTimestamp are the times at which the
	// API server received the request and completed the response.
	RequestReceivedTimestamp, StageTimestamp metav1.MicroTime
}

// String describes the request for failure messages.
func (r Request) String() string { return r.Verb + " " + r.RequestURI + " (" + r.ObjectRef.Name + ")" }

// Write reports whether the request can change an object. Access reviews count
// as reads.
func (r Request) Write() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) &&
		!strings.HasSuffix(r.ObjectRef.Resource, "reviews")
}

// background reports whether the request is a watch or part of leader election.
func (r Request) background() bool {
	return r.Verb == "watch" || r.ObjectRef.Resource == "leases"
}

// Audit collects a user's requests to the API server from a certain moment on:
// those whose entries in the audit log contain the test's namespace. The names of
// accounts of this test contain it, see NewAccount.
type Audit struct {
	env    *Env
	user   string
	offset int64
	// about is a part of the names of the objects.
	about string
}

// About returns the requests for objects whose names contain a text.
func (a *Audit) About(text string) *Audit {
	about := *a
	about.about = text
	return &about
}

// Audit starts to collect the requests of a user. If tests share the user, for
// example SharedUser, requests that do not contain the test's namespace are left
// out.
func (e *Env) Audit(user string) *Audit {
	e.t.Helper()
	return &Audit{env: e, user: user, offset: e.syncAudit()}
}

// Requests returns the user's requests so far, without watches and leader
// election.
func (a *Audit) Requests() []Request {
	a.env.t.Helper()
	a.env.syncAudit()
	var found []Request
	err := a.env.readAudit(a.offset, func(r Request, _ int64) {
		if r.User.Username == a.user && !r.background() && strings.Contains(r.ObjectRef.Name, a.about) {
			found = append(found, r)
		}
	})
	a.env.must(err)
	return found
}

// WatchesAndLeases returns the watches that the user started so far, and the
// user's requests for leader election.
func (a *Audit) WatchesAndLeases() (watches, leases []Request) {
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

// Writes returns the writes among Requests. If except is not empty, requests
// for objects whose names contain it are left out.
func (a *Audit) Writes(except string) []Request {
	a.env.t.Helper()
	return slices.DeleteFunc(a.Requests(), func(r Request) bool {
		return !r.Write() || except != "" && strings.Contains(r.ObjectRef.Name, except)
	})
}

// AllUsers returns the requests of all users since the audit began whose entries
// contain the test's namespace, without watches and leader election.
func (a *Audit) AllUsers() []Request {
	a.env.t.Helper()
	a.env.syncAudit()
	var found []Request
	a.env.must(a.env.readAudit(a.offset, func(r Request, _ int64) {
		if !r.background() {
			found = append(found, r)
		}
	}))
	return found
}

// syncAudit waits until the audit log contains all earlier requests, and returns
// an offset in the log after which all later requests are.
func (e *Env) syncAudit() (offset int64) {
	e.t.Helper()
	offset, err := syncAudit(e.t.Context())
	e.must(err)
	return offset
}

// syncAudit makes a request with a unique name, waits until the audit log
// contains the request, and returns the offset at which the request ends.
func syncAudit(ctx context.Context) (offset int64, err error) {
	marker, from := "audit-"+rand.String(10), auditSize()
	_, err = shared.typed.CoreV1().ConfigMaps(SystemNamespace).Get(ctx, marker, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("get ConfigMap %s: got %w, want not found", marker, err)
	}
	err = wait.PollUntilContextTimeout(ctx, interval, deadline, true, func(context.Context) (bool, error) {
		err := readAudit(from, marker, func(_ Request, end int64) { offset = end })
		return offset > 0, err
	})
	if err != nil {
		return 0, fmt.Errorf("wait for the audit log to catch up: %w", err)
	}
	return offset, nil
}

// auditSize returns the size of the audit log, 0 if there is no log.
func auditSize() int64 {
	info, err := os.Stat(shared.auditLog())
	if err != nil {
		return 0
	}
	return info.Size()
}

// readAudit calls visit for each request after an offset whose log entry contains
// the test's namespace, with the offset at which the request ends.
func (e *Env) readAudit(offset int64, visit func(r Request, end int64)) error {
	return readAudit(offset, e.Namespace, visit)
}

// readAudit calls visit for each request after an offset whose log entry contains
// a text, with the offset at which the request ends.
func readAudit(offset int64, with string, visit func(r Request, end int64)) error {
	return readAuditLog(shared.auditLog(), offset, with, visit)
}

func readAuditLog(log string, offset int64, with string, visit func(r Request, end int64)) error {
	file, err := os.Open(log)
	if err != nil {
		return fmt.Errorf("%w: start the cluster with --audit-log %s", err, log)
	}
	defer func() { _ = file.Close() }()
	// The offset can be a size that was read while an entry was being written: the
	// first entry is the one after the next newline.
	offset = max(offset-1, 0)
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReader(file)
	if offset > 0 {
		skipped, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		offset += int64(len(skipped))
	}
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // the rest of the entry is still being written
		}
		if err != nil {
			return err
		}
		offset += int64(len(line))
		// Most entries belong to other tests: search before decoding.
		if !bytes.Contains(line, []byte(with)) {
			continue
		}
		var request Request
		if err := json.Unmarshal(line, &request); err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
		visit(request, offset)
	}
}
