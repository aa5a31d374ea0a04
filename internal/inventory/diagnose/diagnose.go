package diagnose

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// Why returns the reason that an object is not ready. The UID, if not empty, excludes events
// about an earlier object with the same name.
//
// Why sends three or four requests, within the deadline of the context. If it returns an
// error, the Cause has what was found before. A missing permission is not an error: the
// message names it.
func Why(ctx context.Context, client kubernetes.Interface, key apply.Key, uid types.UID) (Cause, error) {
	cause, missing, err := Find(ctx, client, key, uid)
	if note := prefixed("missing permissions: ", strings.Join(missing, ", ")); note != "" {
		// A long message must not displace the missing permissions.
		cause.Message = join("; ", api.Truncate(oneLine(cause.Message), maxMessage), note)
	}
	return cause, err
}

// Find is like Why, but returns the missing permissions separately, in the form "list pods"
// or "get deployments.apps".
func Find(ctx context.Context, client kubernetes.Interface, key apply.Key, uid types.UID) (cause Cause, missing []string, err error) {
	s := &search{client: client}
	cause, err = s.why(ctx, key, uid)
	cause.Message, cause.Event = s.redactor.redact(cause.Message), s.redactor.redact(cause.Event)
	if err != nil {
		return cause, s.missing, fmt.Errorf("diagnose %s: %w", key, err)
	}
	return cause, s.missing, nil
}

// kindJob is the kind of most hooks. All other hooks that an action waits for are Pods.
var kindJob = schema.GroupKind{Group: "batch", Kind: "Job"}

// search is the state of one diagnosis.
type search struct {
	client kubernetes.Interface
	// missing are the missing permissions, such as "list pods".
	missing []string
	// redactor removes private values from messages.
	redactor redactor
}

// why returns the cause of an object. Kinds without a case report a cause only by
// events.
func (s *search) why(ctx context.Context, key apply.Key, uid types.UID) (Cause, error) {
	apps, core := s.client.AppsV1(), s.client.CoreV1()
	switch key.GroupKind() {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		return read(ctx, s, apps.Deployments(key.Namespace), "get deployments.apps", key, uid, s.deployment)
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}:
		return read(ctx, s, apps.ReplicaSets(key.Namespace), "get replicasets.apps", key, uid, s.replicaSet)
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		return read(ctx, s, apps.StatefulSets(key.Namespace), "get statefulsets.apps", key, uid, s.statefulSet)
	case schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		return read(ctx, s, apps.DaemonSets(key.Namespace), "get daemonsets.apps", key, uid, s.daemonSet)
	case kindJob:
		return read(ctx, s, s.client.BatchV1().Jobs(key.Namespace), "get jobs.batch", key, uid, s.job)
	case schema.GroupKind{Kind: "Pod"}:
		return read(ctx, s, core.Pods(key.Namespace), "get pods", key, uid, s.pod)
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return read(ctx, s, core.PersistentVolumeClaims(key.Namespace), "get persistentvolumeclaims", key, uid, s.claim)
	default:
		return s.withWarning(ctx, Cause{Object: key}, uid)
	}
}

// read reads an object and returns the cause that find returns for it. If a permission
// is missing, the cause has only the last warning event.
func read[T any](ctx context.Context, s *search, from interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*T, error)
}, permission string, key apply.Key, uid types.UID, find func(context.Context, Cause, *T) (Cause, error),
) (Cause, error) {
	own := Cause{Object: key}
	o, err := from.Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apply.AnswerOf(err) == apply.Gone:
		return Cause{Object: key, Reason: "NotFound", Message: "object not found"}, nil
	case s.isForbidden(permission, err):
		return s.withWarning(ctx, own, uid)
	case err != nil:
		return own, err
	}
	return find(ctx, own, o)
}

// listLimit limits the number of objects in the response to a request.
const listLimit = 500

// isForbidden reports whether a read failed because of a missing permission, and records
// the permission.
func (s *search) isForbidden(permission string, err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	if !slices.Contains(s.missing, permission) {
		s.missing = append(s.missing, permission)
	}
	return true
}

// unlessForbidden returns the error of a read, or nil if a permission is missing, which it
// records.
func (s *search) unlessForbidden(permission string, err error) error {
	if s.isForbidden(permission, err) {
		return nil
	}
	return err
}

const (
	// maxLine limits a cause to this number of bytes. The message of a condition contains
	// several causes.
	maxLine = 512
	// maxMessage and maxEvent limit the message and the event of a cause that exceeds
	// maxLine.
	maxMessage = 240
	maxEvent   = 160
)

// Cause is the cause why an object is not ready.
type Cause struct {
	// Object is the object that has the cause: the diagnosed object, or another one that
	// it created.
	Object apply.Key
	// Reason is a reason of Kubernetes, such as ImagePullBackOff.
	Reason string
	// Message describes the cause in a sentence.
	Message string
	// Event is the last warning about Object that differs from Message.
	Event string
}

// Known reports whether a cause was found.
func (c Cause) Known() bool { return c.Reason != "" || c.Message != "" || c.Event != "" }

// String returns the cause as one line of at most 512 bytes:
//
//	Pod default/web-5cf: ImagePullBackOff: Back-off pulling image "web:1"; last warning: Failed: …
func (c Cause) String() string {
	whole := c.line()
	if len(whole) > maxLine {
		c.Message, c.Event = api.Truncate(oneLine(c.Message), maxMessage), api.Truncate(oneLine(c.Event), maxEvent)
		whole = c.line()
	}
	return api.Truncate(whole, maxLine)
}

// advice says what a user can do about a reason of a pod.
var advice = map[string]string{
	"ErrImagePull":               "check the image, its tag and imagePullSecrets",
	"ImagePullBackOff":           "check the image, its tag and imagePullSecrets",
	"ErrImageNeverPull":          "check imagePullPolicy, or load the image on the node",
	"InvalidImageName":           "correct the name of the image",
	"CreateContainerConfigError": "check the Secrets and ConfigMaps that the container refers to",
	crashLoopBackOff:             "read the log of the container with kubectl logs --previous",
}

// WithAdvice returns the cause in one line, as String does, and what to do next if the
// reason shows it.
func (c Cause) WithAdvice() string { return join(". To fix it, ", c.String(), advice[c.Reason]) }

func (c Cause) line() string {
	if !c.Known() {
		return c.Object.String() + ": no cause found"
	}
	description := join("; ", c.description(), prefixed("last warning: ", c.Event))
	return oneLine(c.Object.String() + ": " + description)
}

// description returns the cause without object and event.
func (c Cause) description() string { return join(": ", c.Reason, c.Message) }

// join joins the texts that are not empty.
func join(separator string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), separator)
}

// prefixed returns a text with a prefix, or "" if the text is empty.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// oneLine returns a text in one line: it replaces characters that cannot be printed, and
// collapses white space.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, ""))
	return strings.Join(strings.Fields(text), " ")
}
