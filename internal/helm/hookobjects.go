package helm

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/guard"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
)

// Helm does not delete objects that hooks created, unless a delete policy says so. When
// a custom resource is deleted, the operator deletes them after the delete hooks, which
// may need them, and before the records, which list them.

var secretKind = schema.GroupKind{Kind: "Secret"}

// runToCompletion lists the kinds of hooks for whose end Helm waits.
var runToCompletion = []schema.GroupKind{{Group: "batch", Kind: "Job"}, {Kind: "Pod"}}

// deleteHookObjects deletes the objects that hooks of any stored revision created:
// those that a record lists and that have the operator's label for hooks. The label
// proves the origin, so the record need not be verified.
func (r *run) deleteHookObjects(history []release.Record) error {
	if !r.Deleting || !r.Uninstall.DeletesHookObjects() && !r.CreateNamespace {
		return nil
	}
	if err := r.readHooks(history); err != nil {
		return err
	}
	objects, err := r.hookObjects()
	if err != nil {
		return err
	}
	for _, o := range objects {
		err := r.kube.deleteHookObject(o)
		switch {
		case apierrors.IsForbidden(err):
			// The kind may be from an older chart, and the role from the newest. The
			// object must not block the deletion of the custom resource.
			r.Notifier.Warn(api.EventObjectLeft, fmt.Sprintf("%s, which a hook created, is not deleted: %v", apply.Describe(o.Unstructured), err))
		case err != nil:
			return err
		}
	}
	return nil
}

// deleteHookObject deletes an object that a hook created, unless it stays.
func (k *kubeClient) deleteHookObject(o apply.Object) error {
	live, err := k.objects.Get(k.ctx, o)
	if err != nil || live == nil || !k.madeByHook(live) {
		return err
	}
	kind := o.GroupVersionKind().GroupKind()
	why, err := k.staysBehind(o, k.stateOf(o, live))
	if why == "" && slices.Contains(apply.DataKinds, kind) {
		why = "a hook has created it, and it may hold data"
	}
	switch {
	case err != nil:
		return err
	case why != "":
		return k.leave(o, k.stateOf(o, live), why)
	case !k.Uninstall.DeletesHookObjects(), kind == secretKind && !k.Uninstall.DeletesHookSecrets(), apply.HasKeepPolicy(o), apply.HasKeepPolicy(live):
		if o.GetNamespace() == k.Namespace {
			return k.keepNamespace()
		}
		return nil
	}
	if err := k.objects.DeleteUID(k.ctx, o, live.GetUID(), metav1.DeletePropagationBackground); err != nil {
		return err
	}
	k.deletedObjects = append(k.deletedObjects, o)
	return nil
}

// readHooks reads the remaining records that may contain hooks.
func (r *run) readHooks(history []release.Record) error {
	for _, record := range history {
		if _, read := r.driver.Versions[record.Secret]; read || record.NoHooks && record.Genuine() {
			continue
		}
		_, err := r.driver.Get(record.Secret)
		if err != nil && !errors.Is(err, release.ErrCorrupt) && !errors.Is(err, engine.ErrReleaseNotFound) {
			return err
		}
	}
	return nil
}

// hookObjects returns the hook objects. Jobs and Pods are first, because they may use the
// others.
func (r *run) hookObjects() ([]apply.Object, error) {
	var running, found []apply.Object
	seen := sets.Set[apply.Key]{}
	for _, hook := range r.driver.AllHooks {
		list, err := r.kube.builder.existing(hook.Manifest)
		if err != nil {
			return nil, err
		}
		for _, info := range list {
			o := object(info)
			key := apply.KeyOf(o)
			if seen.Has(key) {
				continue
			}
			seen.Insert(key)
			if slices.Contains(runToCompletion, key.GroupKind()) {
				running = append(running, o)
			} else {
				found = append(found, o)
			}
		}
	}
	return append(running, found...), nil
}

// madeByHook reports whether a hook of the release created an object.
func (k *kubeClient) madeByHook(live *metav1.PartialObjectMetadata) bool {
	return live.Labels[api.LabelHookOwnerUID] != "" && live.Labels[api.LabelOwnerUID] == "" && apply.CheckOwnership(live, k.Owner) == nil &&
		live.DeletionTimestamp == nil
}

// Helm deletes any object with the name of a hook before it creates the hook. It
// rejects a chart that turns a hook into a plain object, because the object of the hook
// exists. Here an object is deleted only if this release created it.

// clockSkew is the tolerated difference between the clocks of the helm CLI and the API
// server.
const clockSkew = time.Minute

// checkHookOwner returns an error for a live object with the name of a hook, unless this
// release created it: as a hook, as a plain object, or with the helm CLI, which does
// not label hooks but records when they ran. As with Helm, a Job or a Pod without an
// owner counts as created by an earlier run, whose record may be gone. Such an object
// holds no data.
func (k *kubeClient) checkHookOwner(o apply.Object, live *metav1.PartialObjectMetadata) error {
	if err := k.foreign(live); err != nil {
		return fmt.Errorf("hook %s: %w; rename the hook", apply.Describe(o.Unstructured), err)
	}
	labels := live.GetLabels()
	if labels[api.LabelHookOwnerUID] != "" || labels[api.LabelOwnerUID] != "" || k.marked(live) || slices.Contains(runToCompletion, o.GroupVersionKind().GroupKind()) && len(live.GetOwnerReferences()) == 0 {
		return nil
	}
	// Signatures do not cover the times of a hook, so everyone who may write the record
	// can change them. They count only for objects that Helm wrote.
	if live.GetNamespace() == k.Namespace && writtenByHelm(live) {
		hooks, err := k.hooksByObject()
		if err != nil {
			return err
		}
		made := live.GetCreationTimestamp()
		for _, hook := range hooks[apply.KeyOf(o)] {
			began, ended := engine.GoTime(hook.LastRun.StartedAt), engine.GoTime(hook.LastRun.CompletedAt)
			if !began.IsZero() && made.After(began.Add(-clockSkew)) && (ended.IsZero() || made.Time.Before(ended.Add(clockSkew))) {
				return nil
			}
		}
	}
	return fmt.Errorf("hook %s: an object with this name exists, and this release did not create it; rename the hook, or delete the object", apply.Describe(o.Unstructured))
}

// deleteHook deletes the object of a hook, unless it stays.
func (k *kubeClient) deleteHook(o apply.Object, live *metav1.PartialObjectMetadata, policy metav1.DeletionPropagation) error {
	if err := k.checkHookOwner(o, live); err != nil || k.hookStays(o, k.stateOf(o, live)) {
		return err
	}
	return k.objects.DeleteUID(k.ctx, o, live.GetUID(), policy)
}

// hookStays reports whether the guarded object of a hook stays although a delete policy of the
// hook, by default before-hook-creation, would delete it. The next run of the hook uses it.
func (k *kubeClient) hookStays(o apply.Object, live apply.State) bool {
	kind := live.GroupKind()
	why := k.rules().Kind(kind)
	if live.Protected {
		why = guard.Protected
	}
	if why == "" || slices.Contains(runToCompletion, kind) || k.approves(live.Key, live.UID) || !k.enforces() && !slices.Contains(apply.DataKinds, kind) {
		return false
	}
	k.reportUnowned(o, "a hook of this release has created it; "+why)
	return true
}

// writtenByHelm reports whether Helm, in any program, or this operator wrote an object.
func writtenByHelm(live *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == api.FieldManager || strings.Contains(entry.Manager, "helm")
	})
}

// hooksByObject returns the hooks of the verified records by the objects that they
// create.
func (k *kubeClient) hooksByObject() (map[apply.Key][]*engine.Hook, error) {
	found := map[apply.Key][]*engine.Hook{}
	for _, hook := range k.driver.Hooks {
		list, err := k.builder.existing(hook.Manifest)
		if err != nil {
			return nil, err
		}
		for key := range keys(list) {
			found[key] = append(found[key], hook)
		}
	}
	return found, nil
}

// findHookLeftovers finds the plain objects that replace a hook object: the live object
// has the owner's label for hooks, and a stored revision contains it as a hook.
func (k *kubeClient) findHookLeftovers(objects engine.ResourceList) error {
	hooks, err := k.hooksByObject()
	if err != nil {
		return err
	}
	for _, info := range objects {
		o := object(info)
		key := apply.KeyOf(o)
		// A guarded object is not deleted here. Helm's ownership check reports it.
		if isHook(info) || hooks[key] == nil || k.enforces() && k.rules().Reason(o.Unstructured) != "" {
			continue
		}
		live, err := k.objects.Get(k.ctx, o)
		if err != nil {
			return err
		}
		if live != nil && live.GetLabels()[api.LabelHookOwnerUID] == string(k.Owner.UID) && (!k.enforces() || !apply.IsProtected(live)) {
			k.hookLeftovers[key] = live.GetUID()
		}
	}
	return nil
}

// hideHookLeftovers makes Helm's ownership check find no object where a hook object is
// going to be replaced.
func (k *kubeClient) hideHookLeftovers(objects engine.ResourceList) {
	for _, info := range objects {
		if _, ok := k.hookLeftovers[apply.KeyOf(object(info))]; ok && !isHook(info) {
			info.Client = absentClient{}
		}
	}
}

// removeHookLeftover deletes a hook object that a plain object replaces, and waits for
// the deletion.
func (k *kubeClient) removeHookLeftover(o apply.Object, uid types.UID) error {
	if err := k.objects.DeleteUID(k.ctx, o, uid, metav1.DeletePropagationBackground); err != nil {
		return err
	}
	delete(k.hookLeftovers, apply.KeyOf(o))
	k.log.printf("%s was created by a hook and is replaced by an object of the release", apply.Describe(o.Unstructured))
	return k.objects.WaitGone(k.ctx, o, uid)
}

// explainConflict returns an error that lists the rendered objects that exist and are
// not owned by the release, or the fallback if it finds none.
func (k *kubeClient) explainConflict(fallback error) error {
	var found []string
	for _, info := range k.target {
		o := object(info)
		if isHook(info) || k.knownOwned(apply.KeyOf(o)) {
			continue
		}
		live, err := k.objects.Get(k.ctx, o)
		if err != nil || live == nil {
			continue
		}
		if why := k.conflictReason(live); why != "" {
			found = append(found, apply.Describe(o.Unstructured)+" "+why)
		}
	}
	return cmp.Or(joinReasons(ErrConflict, found), fallback)
}

// conflictReason returns why Helm's ownership check fails for an object and what users can
// do, or an empty string.
func (k *kubeClient) conflictReason(live *metav1.PartialObjectMetadata) string {
	labels, annotations := live.GetLabels(), live.GetAnnotations()
	name, namespace := annotations[api.AnnotationReleaseName], annotations[api.AnnotationReleaseNamespace]
	switch {
	case apply.CheckOwnership(live, k.Owner) != nil:
		return fmt.Sprintf("belongs to %s; rename one of the two", annotations[api.AnnotationOwner])
	case labels[api.LabelHookOwnerUID] != "":
		return "was created by a hook of this release and is left over; delete it or, to keep it, set Helm's label and annotations for this release on it"
	case name != "" && (name != k.Release || namespace != k.Namespace):
		return fmt.Sprintf("belongs to release %s/%s%s", namespace, name, k.conflictHint())
	case name == "" || labels[api.LabelManagedBy] != api.ManagedByHelm:
		return "exists and belongs to no release" + k.conflictHint()
	}
	return ""
}

// absentClient makes an object look missing to Helm.
type absentClient struct{ resource.RESTClient }

// Get returns a request that fails with NotFound. Helm uses no other method.
func (absentClient) Get() *rest.Request {
	return rest.NewRequestWithClient(&url.URL{Scheme: "http", Host: "absent.invalid"}, "", rest.ClientContentConfig{}, &http.Client{Transport: absentTransport{}})
}

// absentTransport sends no requests.
type absentTransport struct{}

// RoundTrip returns a NotFound error.
func (absentTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
}
