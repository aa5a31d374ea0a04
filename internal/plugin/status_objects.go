package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/inventory/diagnose"
	"github.com/chartwright/chartwright/internal/release"
)

// objectSearch finds the objects of a release and their health.
type objectSearch struct {
	*session

	cr     *unstructured.Unstructured
	status api.Status

	mu sync.Mutex
	// missing names what is left out because a permission is missing.
	missing []string
}

// atOnce is how many objects are read at a time, and diagnosed how many of
// those that are not ready are looked into: each takes some more requests.
const (
	atOnce    = 8
	diagnosed = api.NotReadyLimit
)

// objects returns those of the release: by its record or, where that may not be
// read, by their labels.
func (x *objectSearch) objects(ctx context.Context) ([]objectOutput, error) {
	var all []objectOutput
	stored, err := x.revision(ctx, x.status, deployedRevision(x.status))
	if err == nil {
		all = x.read(ctx, stored)
	} else {
		// A record that is gone or damaged is no reason to show nothing, either.
		x.lacks(err.Error() + ". The objects are found by their labels instead, of the kinds that you may list")
		if all, err = x.labeled(ctx); err != nil {
			return nil, err
		}
	}
	x.explain(ctx, all)
	sortObjects(all)
	return all, nil
}

func (x *objectSearch) lacks(what string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !slices.Contains(x.missing, what) {
		x.missing = append(x.missing, what)
	}
}

// read reads the objects that a revision has.
func (x *objectSearch) read(ctx context.Context, stored *release.Stored) []objectOutput {
	all := make([]objectOutput, len(stored.Objects))
	finished := release.FinishedJobs(stored.Inventory)
	var group sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, o := range stored.Objects {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			all[i] = x.readOne(ctx, o.Unstructured, stored.Namespace)
			all[i].finish(finished[apply.Key(all[i].objectRef)])
		})
	}
	group.Wait()
	slices.Sort(x.missing)
	return all
}

func (x *objectSearch) readOne(ctx context.Context, o *unstructured.Unstructured, namespace string) objectOutput {
	gvk := o.GroupVersionKind()
	f := objectOutput{objectRef: objectRef{gvk.Group, gvk.Kind, o.GetNamespace(), o.GetName()}, Ready: metav1.ConditionUnknown}
	mapping, err := x.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		f.Message = fmt.Sprintf("the cluster has no kind %s of %s", gvk.Kind, gvk.GroupVersion())
		return f
	}
	f.Namespace = scoped(mapping, cmp.Or(o.GetNamespace(), namespace))
	live, err := x.dynamic.Resource(mapping.Resource).Namespace(f.Namespace).Get(ctx, f.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		f.judge(live)
		x.correct(&f)
	case apierrors.IsNotFound(err):
		f.Ready, f.Reason, f.Message = metav1.ConditionFalse, "Gone", "it is not there"
	case apierrors.IsForbidden(err):
		need := permission{verb: "get", resource: mapping.Resource.GroupResource(), namespace: f.Namespace, purpose: "to tell how they are"}
		x.lacks(need.explain(err).Error() + ". They are shown as the operator reports them")
		x.report(&f)
	default:
		f.Message = oneLine(err.Error())
	}
	return f
}

// finish sets the outcome of a Job that its ttlSecondsAfterFinished has deleted.
func (f *objectOutput) finish(outcome string) {
	switch {
	case f.Reason != "Gone" || outcome == "":
	case outcome == inventory.Complete:
		f.Ready, f.Reason, f.Message = metav1.ConditionTrue, "", ""
	default:
		f.Reason, f.Message = "JobFailed", "the Job failed, and Kubernetes has deleted it after its ttlSecondsAfterFinished"
	}
}

// judge sets the health of an object that was read.
func (f *objectOutput) judge(live *unstructured.Unstructured) {
	health := inventory.HealthOf(live, time.Now())
	f.uid, f.Ready = live.GetUID(), metav1.ConditionTrue
	if !health.Ready {
		f.Ready, f.Reason, f.Message = metav1.ConditionFalse, health.Reason, oneLine(health.Message)
	}
}

// correct takes the operator's report of an object where it follows from more
// than the object, which this program does not know.
func (x *objectSearch) correct(f *objectOutput) {
	reported := *f
	x.report(&reported)
	if f.Ready == metav1.ConditionTrue && reported.Ready == metav1.ConditionFalse && inventory.DependsOnContext(reported.Reason) {
		f.Ready, f.Reason, f.Message = reported.Ready, reported.Reason, reported.Message
	}
}

// report sets the health that the operator reports for an object.
func (x *objectSearch) report(f *objectOutput) {
	resources := x.status.Resources
	if resources == nil {
		return
	}
	for _, o := range resources.NotReady {
		if o.Kind == f.Kind && o.Namespace == f.Namespace && o.Name == f.Name {
			f.Ready, f.Reason, f.Message = metav1.ConditionFalse, o.Reason, oneLine(o.Message)
			return
		}
	}
	if resources.Total-resources.Ready == int64(len(resources.NotReady)) {
		// All that are not ready are named.
		f.Ready = metav1.ConditionTrue
	}
}

// explain adds the causes of objects that are not ready.
func (x *objectSearch) explain(ctx context.Context, all []objectOutput) {
	left := diagnosed
	for i := range all {
		f := &all[i]
		// Of one that is gone, or could not be read, there is nothing to be asked.
		if f.Ready != metav1.ConditionFalse || f.uid == "" || left == 0 {
			continue
		}
		left--
		cause := x.why(ctx, apply.Key(f.objectRef), f.uid)
		if !cause.Known() || cause.Event == "" && cause.Object == apply.Key(f.objectRef) && cause.Message == f.Message {
			continue
		}
		f.Cause = causeOf(cause)
	}
}

func causeOf(cause diagnose.Cause) *causeOutput {
	return &causeOutput{
		objectRef: objectRef(cause.Object),
		Reason:    cause.Reason, Message: oneLine(cause.Message), Warning: oneLine(cause.Event),
	}
}

// why finds out why an object is not ready. What it takes that is forbidden is
// noted; what fails otherwise is told in the answer's place.
func (x *objectSearch) why(ctx context.Context, key apply.Key, uid types.UID) diagnose.Cause {
	cause, lacked, err := diagnose.Find(ctx, x.typed, key, uid)
	for _, right := range lacked {
		x.lacks(permissionOf(right, key.Namespace).Error())
	}
	if err != nil && !cause.Known() {
		cause.Message = err.Error()
	}
	return cause
}

// rightOf reads a right as package diagnose names it: "get deployments.apps".
func permissionOf(text, namespace string) *missingPermissionError {
	verb, resource, _ := strings.Cut(text, " ")
	return &missingPermissionError{permission: permission{
		verb: verb, resource: schema.ParseGroupResource(resource), namespace: namespace, purpose: "to tell why objects are not ready",
	}}
}
