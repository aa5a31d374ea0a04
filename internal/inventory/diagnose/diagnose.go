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

// Why finds out why an object is not ready. Its UID, if known, tells its events
// from those of an earlier object of that name; of kinds that are not
// Kubernetes' workloads nothing else does.
//
// Each read is one request, three or four in all, within the deadline of the
// context. With an error comes what was found before it. That a right is
// missing is no error: the message names it.
func Why(ctx context.Context, client kubernetes.Interface, key apply.Key, uid types.UID) (Cause, error) {
	cause, lacked, err := Find(ctx, client, key, uid)
	if rights := prefixed("rights to say more are missing: ", strings.Join(lacked, ", ")); rights != "" {
		// A long message must not push out what a person can mend.
		cause.Message = join("; ", api.Truncate(oneLine(cause.Message), maxMessage), rights)
	}
	return cause, err
}

// Find is Why for who tells of missing rights elsewhere: it returns them by
// themselves, as "list pods" and "get deployments.apps".
func Find(ctx context.Context, client kubernetes.Interface, key apply.Key, uid types.UID) (cause Cause, lacked []string, err error) {
	s := &search{client: client}
	cause, err = s.why(ctx, key, uid)
	cause.Message, cause.Event = s.redactor.redact(cause.Message), s.redactor.redact(cause.Event)
	if err != nil {
		return cause, s.missing, fmt.Errorf("find out why %s is not ready: %w", key, err)
	}
	return cause, s.missing, nil
}

// kindJob is the kind of most hooks. All other hooks that an action waits for are Pods.
var kindJob = schema.GroupKind{Group: "batch", Kind: "Job"}

// search is one question, and what came up on the way to its answer.
type search struct {
	client kubernetes.Interface
	// missing are the rights that were missing, as "list pods".
	missing []string
	// redactor is what must not be told.
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

// read reads an object, and returns the cause that find returns for it. If the
// object cannot be read, only its events report a cause.
func read[T any](ctx context.Context, s *search, from interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*T, error)
}, permission string, key apply.Key, uid types.UID, find func(context.Context, Cause, *T) (Cause, error),
) (Cause, error) {
	own := Cause{Object: key}
	o, err := from.Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Cause{Object: key, Reason: "NotFound", Message: "it is gone"}, nil
	case s.isForbidden(permission, err):
		return s.withWarning(ctx, own, uid)
	case err != nil:
		return own, err
	}
	return find(ctx, own, o)
}

// listLimit is how many objects one request may ask for. Who has more pods than that
// gets an answer from the first of them.
const listLimit = 500

// isForbidden reports whether a read failed for want of a right, and notes which.
func (s *search) isForbidden(right string, err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	if !slices.Contains(s.missing, right) {
		s.missing = append(s.missing, right)
	}
	return true
}

// unlessForbidden returns the error of a read, or nil if a permission is missing,
// which it notes.
func (s *search) unlessForbidden(right string, err error) error {
	if s.isForbidden(right, err) {
		return nil
	}
	return err
}

const (
	// maxLine is the length of an answer, in bytes: a condition's message holds
	// several.
	maxLine = 512
	// maxMessage and longestEvent are what is left of its parts where they
	// do not fit together.
	maxMessage = 240
	maxEvent   = 160
)

// Cause is why an object is not ready, as far as it could be found out.
type Cause struct {
	// Object is what the cause was found at: the object that was asked about,
	// or one that it made.
	Object apply.Key
	// Reason is a word of Kubernetes' own: ImagePullBackOff.
	Reason string
	// Message says more, in a sentence.
	Message string
	// Event is the last warning about Object, if it adds something.
	Event string
}

// Known reports whether anything was found out.
func (c Cause) Known() bool { return c.Reason != "" || c.Message != "" || c.Event != "" }

// String returns the cause as one line of 512 bytes at most:
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

func (c Cause) line() string {
	if !c.Known() {
		return c.Object.String() + ": nothing says why it is not ready"
	}
	said := join("; ", c.said(), prefixed("last warning: ", c.Event))
	return oneLine(c.Object.String() + ": " + said)
}

// said is the cause without the object and the event.
func (c Cause) said() string { return join(": ", c.Reason, c.Message) }

// join puts those texts together that are not empty.
func join(separator string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), separator)
}

// prefixed returns a text with a prefix, and nothing where there is no text.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// oneLine makes a line of what others wrote: what cannot be printed becomes
// space, and space becomes one blank.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, ""))
	return strings.Join(strings.Fields(text), " ")
}
