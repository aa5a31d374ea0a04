package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inputs/dependencies"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
)

// Dependencies are the objects that custom resources depend on, and the custom resources
// that depend on others, see dependencies.Store. They make no request.
type Dependencies interface {
	// Set replaces what a custom resource depends on.
	Set(user dependencies.User, refs []dependencies.Ref)
	// Check returns which dependency of a custom resource is not ready.
	Check(user types.UID, now time.Time) dependencies.Verdict
	// Begin is Check before the release changes. If nothing waits, the custom resource delays
	// the deletion of its dependencies from now on.
	Begin(user types.UID, now time.Time) dependencies.Verdict
	// Rest ends the notifications about readiness until the next Check.
	Rest(user types.UID)
	// Dependents returns the custom resources that must be uninstalled before this one, and
	// when the wait for them ends, 0 if never.
	Dependents(of dependencies.Key, now time.Time) (blocking []dependencies.Dependent, after time.Duration)
	// Has reports whether this version of an object, or a newer one, is known.
	Has(object dependencies.Key, resourceVersion string) bool
	// Version returns the newest known resourceVersion of an object, empty if it is unknown.
	Version(object dependencies.Key) string
	// Hold makes a custom resource count as not ready, whatever its status says.
	Hold(uid types.UID, why string)
	// Settle ends the hold as soon as this version of the custom resource is known.
	Settle(uid types.UID, resourceVersion string)
	// Forget drops a custom resource that is gone.
	Forget(user types.UID)
}

// deletionGrace is how much longer than the timeout of its hooks an uninstall may take before
// the deletions of its dependencies no longer wait for it.
const deletionGrace = 5 * time.Minute

// observeDependencies observes whether the objects that the custom resource depends on are
// ready, and whether a deletion must wait for custom resources that depend on this one.
func (r *Reconciler) observeDependencies(ctx context.Context, v *snapshot) {
	if r.Dependencies == nil {
		return
	}
	o := &v.Observation
	refs, err := r.dependenciesOf(v)
	if v.incomplete != nil {
		return
	}
	if err != nil && o.Invalid == nil {
		o.Invalid = invalid(err)
	}
	v.dependencies, v.DependsOn = refs, statusOf(refs)
	user := dependencies.User{
		Key: r.keyOf(v), UID: v.CR.GetUID(), Bound: r.Kind.ActionTimeout() + deletionGrace,
		Released: o.Running != nil || o.Newest != nil && o.Newest.Owned && o.Newest.Status != api.StatusUninstalled,
	}
	if at := v.CR.GetDeletionTimestamp(); at != nil {
		user.Deleting = at.Time
	}
	r.Dependencies.Set(user, refs)
	if o.Deleting {
		o.Dependents = r.dependentsOf(ctx, v)
		return
	}
	verdict := r.Dependencies.Check(user.UID, o.Now)
	source := v.missingDependency()
	switch {
	case verdict.Cycle != nil && (o.Invalid == nil || source != nil):
		o.Invalid = &plan.Problem{Reason: api.ReasonDependencyCycle, Message: cycleMessage(verdict.Cycle)}
	case verdict.Waits != nil:
		o.Dependency = &plan.Obstacle{Message: v.Redact(waitMessage(*verdict.Waits, user.Namespace)), After: verdict.Next}
	case source != nil:
		o.Dependency = &plan.Obstacle{Message: fmt.Sprintf("Waits for %s: %s", describe(*source, "", user.Namespace), o.Invalid.Message)}
	}
	if source != nil {
		o.Invalid.Waits = true
	}
}

// missingDependency returns the dependency that is also the missing source of values, or
// whose outputs the missing Secret contains. Otherwise it returns nil.
func (v *snapshot) missingDependency() *dependencies.Key {
	if v.missing == nil {
		return nil
	}
	is := *v.missing
	for _, ref := range v.dependencies {
		same := is.Kind.GroupKind() == ref.Kind.GroupKind() && is.Name == ref.Name || is.Kind == valuesfrom.SecretKind && is.Name == outputsSecret(ref.Kind.Kind, ref.Name)
		// The source of a cluster-scoped kind has no namespace.
		if same && ref.Name != "" && (is.Namespace == "" || ref.Namespace == is.Namespace) {
			return &dependencies.Key{GroupKind: ref.Kind.GroupKind(), NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}
		}
	}
	return nil
}

// dependenciesOf returns what the custom resource depends on. With an error, it returns the
// dependencies that are known.
func (r *Reconciler) dependenciesOf(v *snapshot) ([]dependencies.Ref, error) {
	if len(r.Kind.DependencyKinds()) == 0 && v.CR.GetAnnotations()[api.AnnotationDependsOn] == "" {
		return nil, nil
	}
	return evaluate(r, v, "dependsOn/"+v.Release.Namespace, func(object map[string]any) ([]dependencies.Ref, error) {
		return r.Kind.DependenciesFor(object, v.Release)
	})
}

// statusOf returns the first dependencies for the status. Two of them can differ only in the
// expression that decides whether the object is ready.
func statusOf(refs []dependencies.Ref) []api.DependencyStatus {
	var list []api.DependencyStatus
	for _, ref := range refs {
		apiVersion, kind := ref.Kind.ToAPIVersionAndKind()
		item := api.DependencyStatus{APIVersion: apiVersion, Kind: kind, Namespace: ref.Namespace, Name: ref.Name, Selector: ref.Selector}
		if len(list) < api.DependenciesLimit && !slices.Contains(list, item) {
			list = append(list, item)
		}
	}
	return list
}

func (r *Reconciler) keyOf(v *snapshot) dependencies.Key {
	return dependencies.Key{GroupKind: r.Kind.GVK().GroupKind(), NamespacedName: v.key}
}

// dependentsOf returns why the deletion has to wait for custom resources that depend on this
// one, nil if it does not wait. In a namespace that is being deleted, nothing waits.
func (r *Reconciler) dependentsOf(ctx context.Context, v *snapshot) *plan.Obstacle {
	if v.Requests.IgnoreDependents {
		return nil
	}
	blocking, after := r.Dependencies.Dependents(r.keyOf(v), v.Observation.Now)
	if len(blocking) == 0 {
		return nil
	}
	if v.CR.GetNamespace() != "" {
		switch terminating, err := r.Actions.Terminating(ctx, v.CR.GetNamespace()); {
		case terminating:
			return nil
		case err != nil && (after == 0 || after > status.ReadAgain):
			after = status.ReadAgain
		}
	}
	return &plan.Obstacle{Message: inUseMessage(blocking, v.CR.GetNamespace()), After: after}
}

// dependencyError is a release.ErrStale: a dependency is not ready, or has changed.
type dependencyError struct{ why string }

func (e *dependencyError) Error() string { return e.why }

// Is reports whether the target is release.ErrStale.
func (*dependencyError) Is(target error) bool { return target == release.ErrStale }

// recheckDependencies returns an error that wraps release.ErrStale if the release must not
// follow the spec or be deleted yet. Dependencies and dependents may have changed since the
// decision. Each side first makes itself known to the other, with Begin or Hold, and then
// checks the other, so that an install and the deletion of its dependency never both start.
//
// If a user edits a dependency and then this custom resource, the second watch may be
// faster. Therefore an upgrade after an edit compares the objects that it depends on by name
// with the API server. Two later edits have no order that anyone could observe.
func (r *Reconciler) recheckDependencies(ctx context.Context, v *snapshot, d plan.Decision) error {
	if r.Dependencies == nil {
		return nil
	}
	if d.State == plan.StateDeleting && d.Step == plan.StepUninstall && v.Observation.Dependents == nil {
		if waits := r.dependentsOf(ctx, v); waits != nil {
			return fmt.Errorf("%w: %s", release.ErrStale, waits.Message)
		}
		return nil
	}
	if len(v.dependencies) == 0 || !followsSpec(d) {
		return nil
	}
	if d.Step == plan.StepUpgrade && requested(v) {
		for _, ref := range v.dependencies {
			if ref.Name == "" {
				continue
			}
			key := dependencies.Key{GroupKind: ref.Kind.GroupKind(), NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}
			version, err := r.Version(ctx, ref.Kind, key.NamespacedName)
			switch {
			case apply.AnswerOf(err) == apply.Gone:
				return &dependencyError{fmt.Sprintf("Waits for %s: it does not exist", describe(key, "", v.CR.GetNamespace()))}
			case err != nil:
				return fmt.Errorf("read %s, which the custom resource depends on: %w", key, err)
			case !r.Dependencies.Has(key, version):
				return &dependencyError{fmt.Sprintf("Waits for %s: the operator has not received its last change", describe(key, "", v.CR.GetNamespace()))}
			}
		}
	}
	if waits := r.Dependencies.Begin(v.CR.GetUID(), r.Now()).Waits; waits != nil {
		return &dependencyError{waitMessage(*waits, v.CR.GetNamespace())}
	}
	return nil
}

// followsSpec reports whether a step changes the release to follow the spec.
func followsSpec(d plan.Decision) bool {
	switch d.Step {
	case plan.StepInstall, plan.StepUpgrade, plan.StepAdopt:
		return true
	default:
		return d.State == plan.StateMoving && d.Step == plan.StepUninstall
	}
}

// holdDependents makes custom resources that depend on this one wait while it changes or is
// about to change, because its status does not report this at once.
func (r *Reconciler) holdDependents(v *snapshot, d plan.Decision) {
	if why := v.unsettled(d); r.Dependencies != nil && why != "" {
		r.Dependencies.Hold(v.CR.GetUID(), why)
	}
}

// settleDependents lets the status decide whether the custom resources that depend on this
// one wait. It is called when the status is up to date. A custom resource in sync does not
// wait for its own dependencies.
func (r *Reconciler) settleDependents(v *snapshot, d plan.Decision) {
	if r.Dependencies == nil {
		return
	}
	if v.unsettled(d) == "" {
		r.Dependencies.Settle(v.CR.GetUID(), v.version)
	}
	if d.State == plan.StateInSync {
		r.Dependencies.Rest(v.CR.GetUID())
	}
}

// unsettled returns why the release will change soon, empty if it stays as the status says.
func (v *snapshot) unsettled(d plan.Decision) string {
	o := v.Observation
	switch {
	case o.Running != nil && plan.Changes(o.Running.Step):
		return "it is being changed: " + string(o.Running.Step)
	case plan.Changes(d.Step):
		return "it is being changed: " + string(d.Step)
	case d.Throttled:
		return "its next action waits, because many were requested"
	case o.Postponed && v.queued:
		return "it waits for its turn in the rollout of its chart"
	default:
		return ""
	}
}

// waitMessage describes a dependency that is not ready to a user in a namespace.
func waitMessage(waits dependencies.Unready, namespace string) string {
	return fmt.Sprintf("Waits for %s: %s", describe(waits.Key, waits.Selector, namespace), strings.TrimSuffix(waits.Message, "."))
}

func cycleMessage(cycle []dependencies.Key) string {
	names := make([]string, 0, len(cycle)+1)
	for _, key := range append(cycle, cycle[0]) {
		names = append(names, describe(key, "", key.Namespace))
	}
	if more := len(names) - maxInCycle; more > 0 {
		names = append(append(names[:maxInCycle-1], fmt.Sprintf("%d more", more)), names[len(names)-1])
	}
	return "These custom resources depend on each other, so none can be first: " + strings.Join(names, " → ") + ". Remove one of the dependencies"
}

// maxInCycle is how many custom resources the message about a cycle names.
const maxInCycle = 20

// maxNamed is how many custom resources a message names.
const maxNamed = 5

// inUseMessage describes the custom resources that delay a deletion, and what ends the wait.
func inUseMessage(blocking []dependencies.Dependent, namespace string) string {
	var live, others []string
	for _, dependent := range blocking {
		switch name := describe(dependent.Key, "", namespace); {
		case dependent.Key.Name == "":
			others = append(others, dependent.Message)
		case dependent.Message == "":
			live = append(live, name)
		default:
			others = append(others, name+" "+dependent.Message)
		}
	}
	if len(live) == 0 {
		return "Waits for custom resources that depend on this one: " + api.First(others, maxNamed)
	}
	return fmt.Sprintf("In use by %s: delete what depends on this custom resource first, or set the annotation %s to %q", api.First(live, maxNamed), api.AnnotationDeletionOrder, api.DeletionOrderIgnore)
}

// describe returns the kind and the name of an object, with its namespace if it is another
// one.
func describe(key dependencies.Key, selector, namespace string) string {
	name := key.Name
	if key.Namespace != "" && key.Namespace != namespace {
		name = key.Namespace + "/" + name
	}
	switch {
	case key.Name != "":
		return key.Kind + " " + name
	case selector != "":
		return fmt.Sprintf("%s with the labels %s", key.Kind, selector)
	default:
		return key.Kind
	}
}
