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
	missingParts

	cr     *unstructured.Unstructured
	status api.Status
}

// maxConcurrent limits concurrent requests. maxDiagnosed limits the search for causes,
// which takes several requests for each object.
const (
	maxConcurrent = 8
	maxDiagnosed  = api.NotReadyLimit
)

// objects returns the objects of the release. It finds them by the release record or,
// if that cannot be read, by their labels.
func (x *objectSearch) objects(ctx context.Context) ([]objectOutput, error) {
	var all []objectOutput
	stored, err := x.revision(ctx, x.status, deployedRevision(x.status))
	if err == nil {
		all = x.read(ctx, stored)
	} else {
		x.addMissing(err.Error() + ". Objects are found by their labels instead, if you can list their kinds")
		if all, err = x.labeled(ctx); err != nil {
			return nil, err
		}
	}
	x.explain(ctx, all)
	sortObjects(all)
	return all, nil
}

// read reads the objects of a revision.
func (x *objectSearch) read(ctx context.Context, stored *release.Stored) []objectOutput {
	all := make([]objectOutput, len(stored.Objects))
	finished := release.FinishedJobs(stored.Inventory)
	concurrently(len(all), func(i int) {
		all[i] = x.readOne(ctx, stored.Objects[i].Unstructured, stored.Namespace)
		all[i].finish(finished[apply.Key(all[i].objectRef)])
	})
	slices.Sort(x.missing)
	return all
}

// concurrently calls do for 0 to n-1, with at most maxConcurrent calls at a time.
func concurrently(n int, do func(i int)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, maxConcurrent)
	for i := range n {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			do(i)
		})
	}
	group.Wait()
}

func (x *objectSearch) readOne(ctx context.Context, o *unstructured.Unstructured, namespace string) objectOutput {
	gvk := o.GroupVersionKind()
	f := objectOutput{objectRef: objectRef{gvk.Group, gvk.Kind, o.GetNamespace(), o.GetName()}, Ready: metav1.ConditionUnknown}
	mapping, err := x.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		f.Message = fmt.Sprintf("kind %s of %s not found in the cluster", gvk.Kind, gvk.GroupVersion())
		return f
	}
	f.Namespace = scoped(mapping, cmp.Or(o.GetNamespace(), namespace))
	live, err := x.dynamic.Resource(mapping.Resource).Namespace(f.Namespace).Get(ctx, f.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		f.setHealth(live)
		x.applyReportedRules(&f)
	case apierrors.IsNotFound(err):
		f.Ready, f.Reason, f.Message = metav1.ConditionFalse, "Gone", "object not found"
	case apierrors.IsForbidden(err):
		required := permission{verb: "get", resource: mapping.Resource.GroupResource(), namespace: f.Namespace, purpose: "to show their health"}
		x.addMissing(required.explain(err).Error() + ". They are shown as in the status of the custom resource")
		x.setReported(&f)
	default:
		f.Message = oneLine(err.Error())
	}
	return f
}

// finish sets the outcome of a Job that was deleted after its ttlSecondsAfterFinished.
func (f *objectOutput) finish(outcome string) {
	switch {
	case f.Reason != "Gone" || outcome == "":
	case outcome == inventory.Complete:
		f.Ready, f.Reason, f.Message = metav1.ConditionTrue, "", ""
	default:
		f.Reason, f.Message = "JobFailed", "the Job failed, and was deleted after its ttlSecondsAfterFinished"
	}
}

// setHealth sets the health of an object that was read.
func (f *objectOutput) setHealth(live *unstructured.Unstructured) {
	health := inventory.HealthOf(live, time.Now())
	f.uid, f.Ready = live.GetUID(), metav1.ConditionTrue
	if !health.Ready {
		f.Ready, f.Reason, f.Message = metav1.ConditionFalse, health.Reason, oneLine(health.Message)
	}
}

// applyReportedRules replaces the health of an object by the reported one if it depends
// on more than the object, such as on the health rules of the operator.
func (x *objectSearch) applyReportedRules(f *objectOutput) {
	reported := *f
	x.setReported(&reported)
	if f.Ready == metav1.ConditionTrue && reported.Ready == metav1.ConditionFalse && inventory.DependsOnContext(reported.Reason) {
		f.Ready, f.Reason, f.Message = reported.Ready, reported.Reason, reported.Message
	}
}

// setReported sets the health of an object that the status of the custom resource
// reports.
func (x *objectSearch) setReported(f *objectOutput) {
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
		// The status names all objects that are not ready.
		f.Ready = metav1.ConditionTrue
	}
}

// explain adds the causes of objects that are not ready.
func (x *objectSearch) explain(ctx context.Context, all []objectOutput) {
	left := maxDiagnosed
	for i := range all {
		f := &all[i]
		// Objects without a UID do not exist or could not be read.
		if f.Ready != metav1.ConditionFalse || f.uid == "" || left == 0 {
			continue
		}
		left--
		cause := x.cause(ctx, apply.Key(f.objectRef), f.uid)
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

// cause finds why an object is not ready. It notes missing permissions.
// Any other error becomes the message of the cause.
func (x *objectSearch) cause(ctx context.Context, key apply.Key, uid types.UID) diagnose.Cause {
	cause, missing, err := diagnose.Find(ctx, x.typed, key, uid)
	for _, permission := range missing {
		x.addMissing(permissionOf(permission, key.Namespace).Error())
	}
	if err != nil && !cause.Known() {
		cause.Message = err.Error()
	}
	return cause
}

// permissionOf parses a permission in the format of package diagnose, such as
// "get deployments.apps".
func permissionOf(text, namespace string) *missingPermissionError {
	verb, resource, _ := strings.Cut(text, " ")
	return &missingPermissionError{permission: permission{
		verb: verb, resource: schema.ParseGroupResource(resource), namespace: namespace, purpose: "to find why objects are not ready",
	}}
}
