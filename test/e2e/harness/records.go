package harness

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Records returns the Secrets with a release's revisions, oldest first.
func (e *Env) Records(release string) []corev1.Secret {
	e.t.Helper()
	records, err := e.records(e.t.Context(), release)
	e.must(err)
	return records
}

func (e *Env) records(ctx context.Context, release string) ([]corev1.Secret, error) {
	list, err := e.Typed.CoreV1().Secrets(e.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: "owner=helm,name=" + release,
		FieldSelector: "type=helm.sh/release.v1",
	})
	if err != nil {
		return nil, err
	}
	// A copy of a record has the record's labels, but another name.
	list.Items = slices.DeleteFunc(list.Items, func(record corev1.Secret) bool {
		return record.Name != "sh.helm.release.v1."+release+".v"+record.Labels["version"]
	})
	slices.SortFunc(list.Items, func(a, b corev1.Secret) int { return version(a) - version(b) })
	return list.Items, nil
}

func version(record corev1.Secret) int {
	n, err := strconv.Atoi(record.Labels["version"])
	if err != nil {
		return 0 // sorts before every revision
	}
	return n
}

// Revisions returns a release's revisions, as "1 superseded, 2 deployed".
func (e *Env) Revisions(release string) string {
	e.t.Helper()
	return revisions(e.Records(release))
}

func revisions(records []corev1.Secret) string {
	found := make([]string, len(records))
	for i := range records {
		found[i] = records[i].Labels["version"] + " " + records[i].Labels["status"]
	}
	return strings.Join(found, ", ")
}

// WaitRevisions waits until a release has exactly these revisions.
func (e *Env) WaitRevisions(release, wanted string) {
	e.t.Helper()
	e.Wait("release "+release+" to have revisions "+wanted, func(ctx context.Context) error {
		records, err := e.records(ctx, release)
		if err != nil {
			return err
		}
		if found := revisions(records); found != wanted {
			return fmt.Errorf("it has revisions %q", found)
		}
		return nil
	})
}

// ExpectRevisions fails the test if a release does not have exactly these
// revisions.
func (e *Env) ExpectRevisions(release, wanted string) {
	e.t.Helper()
	if found := e.Revisions(release); found != wanted {
		e.t.Fatalf("release %s has revisions %q, want %q", release, found, wanted)
	}
}

// Event contains the parts of an event that users read.
type Event struct{ Type, Reason, Note string }

// events returns the events about an object.
func (e *Env) events(ctx context.Context, about *unstructured.Unstructured) ([]Event, error) {
	list, err := e.Typed.EventsV1().Events(e.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var found []Event
	for i := range list.Items {
		event := &list.Items[i]
		if event.Regarding.Kind == about.GetKind() && event.Regarding.Name == about.GetName() {
			found = append(found, Event{event.Type, event.Reason, event.Note})
		}
	}
	return found, nil
}

// WaitEvent waits for an event about an object, and returns it.
func (e *Env) WaitEvent(about *unstructured.Unstructured, reason string) Event {
	e.t.Helper()
	var event Event
	e.Wait(fmt.Sprintf("event %s about %s", reason, named(about)), func(ctx context.Context) error {
		events, err := e.events(ctx, about)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(events, func(e Event) bool { return e.Reason == reason })
		if i < 0 {
			return fmt.Errorf("events: %v", events)
		}
		event = events[i]
		return nil
	})
	return event
}
