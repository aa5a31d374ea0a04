package inventory

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/apply"
)

// If objects of a kind cannot be watched, only the releases with such objects are
// affected. Watches records the failure, reconciles the owners so that their status
// reports it, and retries the watch. Until the watch starts, objects of the kind count as
// ready.

const (
	// startFailure is the key of a failure to start the watch, in place of a namespace.
	startFailure = "."
	// transientFor is how long a failure that may be transient is not reported.
	transientFor = time.Minute
	// A failed start is retried with exponential backoff, between retryAtLeast and
	// retryAtMost.
	retryAtLeast = time.Second
	retryAtMost  = 5 * time.Minute
)

// failure describes why objects of a kind cannot be watched in a namespace.
type failure struct {
	why   string
	since time.Time
	// reported is true if the status of the owners reports the failure. Permanent
	// failures are reported at once, others after transientFor.
	reported bool
}

// failure returns the failure that affects a namespace, or the zero value.
func (b *watch) failure(namespace string) (found failure) {
	for at, f := range b.failed {
		if at == startFailure || at == "" || at == namespace || b.root {
			found = f
		}
	}
	return found
}

// Forbidden is the reason that objects cannot be watched if a permission is missing.
const Forbidden = "grant the operator permission to list and watch them"

// Unwatched is a kind whose objects cannot be watched, with the reason.
type Unwatched struct {
	schema.GroupKind
	Why string
}

// Unwatched returns the kinds of an owner's objects that cannot be watched in the release
// namespace.
func (w *Watches) Unwatched(owner types.UID, namespace string) []Unwatched {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []Unwatched
	for _, gvk := range w.byOwner[owner] {
		if known := w.kinds[gvk.GroupKind()]; known != nil && known.failure(namespace).reported {
			found = append(found, Unwatched{gvk.GroupKind(), known.failure(namespace).why})
		}
	}
	return found
}

// AllUnwatched returns every kind that a release uses and that cannot be watched in some
// namespace.
func (w *Watches) AllUnwatched() []Unwatched {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []Unwatched
	for gk, known := range w.kinds {
		for namespace, f := range known.failed {
			if !f.reported || len(known.owners) == 0 {
				continue
			}
			why := f.why
			if namespace != startFailure && namespace != "" {
				why = fmt.Sprintf("in namespace %s: %s", namespace, why)
			}
			found = append(found, Unwatched{gk, why})
		}
	}
	slices.SortFunc(found, func(a, b Unwatched) int { return strings.Compare(a.String()+a.Why, b.String()+b.Why) })
	return found
}

// Retry starts, without backoff, the watches that could not be started or whose kind was no
// longer served. It is called when a CustomResourceDefinition has changed.
func (w *Watches) Retry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, known := range w.kinds {
		for namespace, f := range known.failed {
			if f.why == errNoKind.Error() && !known.resource.Empty() {
				go w.move(known, namespace, known.resource)
			}
		}
		if known.attempts > 0 {
			known.startedAt = time.Time{}
			go w.start(known)
		}
	}
}

// retryLater schedules the next attempt to start a watch. The caller holds the lock.
func (w *Watches) retryLater(failed *watch) {
	pause := min(retryAtLeast<<min(failed.attempts, 16), retryAtMost)
	failed.attempts++
	if failed.retry != nil {
		failed.retry.Stop()
	}
	failed.retry = w.after(pause, func() {
		if w.isWanted(failed) {
			w.start(failed)
		}
	})
}

// isWanted reports whether an owner still needs the watch.
func (w *Watches) isWanted(known *watch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(known.owners) > 0 && w.kinds[known.gvk.GroupKind()] == known
}

// setFailure records why a kind cannot be watched in a namespace; with nil, it removes the
// failure. It reconciles the owners if their status changes.
func (w *Watches) setFailure(known *watch, namespace string, err error) {
	w.mu.Lock()
	before := known.failed[namespace]
	var after failure
	if err == nil {
		delete(known.failed, namespace)
	} else {
		after = failure{why: err.Error(), since: time.Now()}
		if before.why != "" {
			after.since = before.since
		}
		after.reported = before.reported || namespace == startFailure || isFinal(err) || time.Since(after.since) >= transientFor
		known.failed[namespace] = after
	}
	close(known.updated)
	known.updated = make(chan struct{})
	var owners []types.UID
	if before.reported != after.reported || after.reported && before.why != after.why {
		var unwatched []string
		for at, f := range known.failed {
			if f.reported && (at == startFailure || known.root) {
				at = ""
			}
			if f.reported {
				unwatched = append(unwatched, at)
			}
		}
		w.index.setUnwatched(known.gvk.GroupKind(), unwatched)
		owners = slices.Collect(maps.Keys(known.owners))
	}
	w.mu.Unlock()
	for _, owner := range owners {
		w.index.onChange(owner)
	}
}

// responseError is the status code of a failed list or watch request.
type responseError int

// isFinal reports whether a failure is permanent.
func isFinal(err error) bool {
	answer, ok := errors.AsType[responseError](err)
	return ok && (answer == http.StatusForbidden || answer == http.StatusNotFound || answer == http.StatusMethodNotAllowed)
}

// Error describes what the administrator can do.
func (e responseError) Error() string {
	switch e {
	case http.StatusForbidden:
		return Forbidden
	case http.StatusNotFound:
		return errNoKind.Error()
	case http.StatusMethodNotAllowed:
		return "the API server does not support list and watch requests for them"
	default:
		return fmt.Sprintf("list or watch request failed: %d %s; see the operator log for details", int(e), http.StatusText(int(e)))
	}
}

// observeResponses returns an HTTP client for the cache of a namespace. It records the kinds
// whose list and watch requests fail.
func (w *Watches) observeResponses(namespace string, from *http.Client) *http.Client {
	client := *from
	client.Transport = transport(func(request *http.Request) (*http.Response, error) {
		response, err := from.Transport.RoundTrip(request)
		if err == nil {
			if resource, ok := resourceOf(request.URL.Path); ok {
				w.recordResponse(namespace, resource, response.StatusCode)
			}
		}
		return response, err
	})
	return &client
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip sends the request.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }

// resourceOf returns the resource that a request path lists, and false for other paths.
func resourceOf(path string) (schema.GroupVersionResource, bool) {
	gv, _, rest := apply.SplitPath(path)
	if len(rest) != 1 {
		return schema.GroupVersionResource{}, false
	}
	return gv.WithResource(rest[0]), true
}

// recordResponse records the status code of a list or watch request.
func (w *Watches) recordResponse(namespace string, resource schema.GroupVersionResource, status int) {
	var err error
	switch {
	case status == http.StatusGone, status == http.StatusTooManyRequests:
		// These are part of the normal operation of a watch.
		return
	case status >= http.StatusBadRequest:
		err = responseError(status)
	}
	w.mu.Lock()
	var known *watch
	failed := false
	for _, candidate := range w.kinds {
		if candidate.resource == resource {
			known = candidate
			_, failed = known.failed[namespace]
		}
	}
	w.mu.Unlock()
	switch {
	case known != nil && status == http.StatusNotFound:
		// The request that was answered must not wait for others.
		go w.move(known, namespace, resource)
	case known != nil && err != nil:
		w.setFailure(known, namespace, err)
	case failed:
		// The objects are still being listed.
		go w.clearFailureWhenSynced(known, namespace)
	}
}

// clearFailureWhenSynced removes the failure of a watch in a namespace as soon as the
// watch has received all objects.
func (w *Watches) clearFailureWhenSynced(known *watch, namespace string) {
	w.mu.Lock()
	var synced toolscache.DoneChecker
	for at, checker := range known.synced {
		if at.namespace == namespace {
			synced = checker
		}
	}
	w.mu.Unlock()
	if synced == nil {
		return
	}
	select {
	case <-synced.Done():
	case <-time.After(transientFor):
		// The response to the next request starts this again.
		return
	}
	w.setFailure(known, namespace, nil)
}

// setUnwatched sets the namespaces where objects of a kind cannot be watched. The empty name
// means all namespaces, or cluster-scoped objects.
func (x *Index) setUnwatched(gk schema.GroupKind, namespaces []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(namespaces) == 0 {
		delete(x.unwatched, gk)
		return
	}
	x.unwatched[gk] = namespaces
}

// unknownHealth returns the health of an object that no watch has delivered since its spec
// changed. If the kind cannot be watched, the object counts as ready.
func (x *Index) unknownHealth(key apply.Key) Health {
	namespaces := x.unwatched[key.GroupKind()]
	if slices.Contains(namespaces, "") || slices.Contains(namespaces, key.Namespace) {
		return healthy
	}
	return unobserved
}
