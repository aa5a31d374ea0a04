package helm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/guard"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// candidate is an object of the release whose deletion or replacement may need an
// approval.
type candidate struct {
	apply.Object
	// why is why it is guarded. It is empty for a StatefulSet whose content is unknown.
	why string
}

// rules returns the rules of the kind.
func (k *kubeClient) rules() guard.Rules {
	return guard.Rules{Kinds: sets.New(k.Guard.GroupKinds()...)}
}

// approves reports whether an object is among the guarded operations that were approved. Another
// object of the same name may have replaced it since.
func (k *kubeClient) approves(key apply.Key, uid types.UID) bool {
	approved, is := k.approved[key]
	return is && (approved == uid || approved == "")
}

// enforces reports whether guarded operations need an approval.
func (k *kubeClient) enforces() bool {
	return (k.Guard.Mode == "" || k.Guard.Mode == watches.GuardEnforce) && k.Approval != watches.ApprovalNever
}

// approvesAll reports whether every change that a user requests needs an approval.
func (k *kubeClient) approvesAll() bool {
	return k.Approval == watches.ApprovalAlways && !k.Automatic
}

// guardedOperations returns the guarded operations of an upgrade or a rollback. Without
// guarded objects in the release it makes no request, and parses only what Helm parses,
// too.
func (r *run) guardedOperations(records []release.Record, manifests []*engine.File) ([]guard.Operation, error) {
	previous, err := r.previousObjects(records)
	if err != nil {
		return nil, err
	}
	candidates, err := r.kube.candidates(previous)
	if err != nil || len(candidates) == 0 && !r.Force {
		return nil, err
	}
	wanted, err := r.kube.wantedObjects(manifests, sets.KeySet(candidates))
	if err != nil {
		return nil, fmt.Errorf("check which guarded objects the action changes: %w", err)
	}
	var found []guard.Operation
	for _, key := range sortedKeys(sets.KeySet(candidates).Union(sets.KeySet(wanted))) {
		operation, err := r.kube.operationOn(candidates[key], wanted[key])
		if err != nil {
			return nil, err
		}
		if operation != nil {
			found = append(found, *operation)
		}
	}
	return found, nil
}

// previousObjects returns the objects in the manifests of the newest and of the deployed
// revisions. Helm reads these records afterwards.
func (r *run) previousObjects(records []release.Record) (engine.ResourceList, error) {
	var objects engine.ResourceList
	for i, record := range records {
		if i > 0 && record.Status != api.StatusDeployed {
			continue
		}
		stored, err := r.driver.ReadAhead(record.Secret)
		if errors.Is(err, engine.ErrReleaseNotFound) {
			// Helm reads the record again, and reports the error.
			continue
		}
		if err != nil {
			return nil, err
		}
		list, err := r.kube.builder.shared(stored.Manifest)
		if err != nil {
			// The server does not serve all kinds.
			list, err = r.kube.builder.lenient().shared(stored.Manifest)
		}
		if err != nil {
			return nil, fmt.Errorf("revision %d: %w", record.Revision, err)
		}
		objects = append(objects, list...)
	}
	return objects, nil
}

// candidates returns the guarded objects among the objects of previous revisions and the
// objects that the inventory holds for the owner.
func (k *kubeClient) candidates(previous engine.ResourceList) (map[apply.Key]candidate, error) {
	rules := k.rules()
	found := map[apply.Key]candidate{}
	seen := sets.Set[apply.Key]{}
	for _, info := range previous {
		o := object(info)
		key := apply.KeyOf(o)
		if isHook(info) {
			continue
		}
		seen.Insert(key)
		why := rules.Reason(o.Unstructured)
		if state, _ := k.managed(key); why == "" && state.Protected {
			why = guard.Protected
		}
		if why != "" {
			found[key] = candidate{Object: o, why: why}
		}
	}
	owned, err := k.owned()
	if err != nil {
		return nil, err
	}
	for _, state := range owned {
		why := rules.Kind(state.GroupKind())
		if state.Protected {
			why = guard.Protected
		}
		if seen.Has(state.Key) || state.Kept || state.Deleting || why == "" && state.GroupKind() != guard.StatefulSet {
			continue
		}
		o, err := k.named(state.Key)
		if meta.IsNoMatchError(err) {
			// No request can change an object of this kind.
			continue
		}
		if err != nil {
			return nil, err
		}
		found[state.Key] = candidate{Object: o, why: why}
	}
	return found, nil
}

// sortedKeys returns the keys of a map in the order of their texts.
func sortedKeys[V any](objects map[apply.Key]V) []apply.Key {
	return slices.SortedFunc(maps.Keys(objects), func(a, b apply.Key) int { return strings.Compare(a.String(), b.String()) })
}

// wantedObjects returns those of the named objects that manifests contain. It parses only
// documents that may contain one. A forced action may recreate an object with only new
// content that is guarded, so it also returns these objects, and all if each needs an approval.
func (k *kubeClient) wantedObjects(manifests []*engine.File, named sets.Set[apply.Key]) (map[apply.Key]apply.Object, error) {
	found := map[apply.Key]apply.Object{}
	builder := k.builder.lenient()
	parsed := named
	if k.Force {
		parsed = nil
	}
	for _, manifest := range manifests {
		text := filterManifest(string(manifest.Data), parsed)
		if strings.TrimSpace(text) == "" {
			continue
		}
		list, err := builder.build(text)
		if err != nil && !errors.Is(err, errKindUnread) {
			err = fmt.Errorf("%w: %w", chart.ErrRender, err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", manifest.Name, err)
		}
		for _, info := range list {
			o := object(info)
			if !isHook(info) && (named.Has(apply.KeyOf(o)) || k.Force && (k.approvesAll() || k.rules().Reason(o.Unstructured) != "")) {
				found[apply.KeyOf(o)] = o
			}
		}
	}
	return found, nil
}

// operationOn returns the guarded operation on an object, or nil. Wanted is the object in
// the new revision; its content is nil if the new revision does not contain the object. The
// content of the candidate is nil if only the new content is guarded.
func (k *kubeClient) operationOn(c candidate, wanted apply.Object) (*guard.Operation, error) {
	if wanted.Unstructured == nil {
		return k.deletionOf(c)
	}
	operation, err := k.recreationOf(wanted)
	if operation != nil || err != nil || c.Unstructured == nil {
		return operation, err
	}
	return k.scalingOf(c, wanted)
}

// deletionOf returns the deletion of an object that is not rendered any longer, or nil if
// it does not need an approval: the object does not exist, is kept, or is not owned by the
// release.
func (k *kubeClient) deletionOf(c candidate) (*guard.Operation, error) {
	key := apply.KeyOf(c)
	if apply.HasKeepPolicy(c) || k.neverDeleted(key) {
		return nil, nil
	}
	live, err := k.objects.Get(k.ctx, c.Object)
	switch {
	case apierrors.IsForbidden(err):
		return &guard.Operation{Verb: guard.Delete, Key: key, Why: c.why}, nil
	case err != nil:
		return nil, err
	case live == nil, live.DeletionTimestamp != nil, apply.HasKeepPolicy(live):
		return nil, nil
	}
	if !k.ownsLive(key, live) {
		return nil, nil
	}
	why, err := k.reason(c.Object, live)
	if err != nil || why == "" {
		return nil, err
	}
	return &guard.Operation{Verb: guard.Delete, Key: key, UID: live.UID, Why: why}, nil
}

// ownsLive reports whether the release owns a live object.
func (k *kubeClient) ownsLive(key apply.Key, live *metav1.PartialObjectMetadata) bool {
	_, managed := k.managed(key)
	return managed || k.owns(key, live) == nil
}

// recreationOf returns the recreation of an object that cannot be changed, or nil. Only a
// forced action recreates objects.
func (k *kubeClient) recreationOf(wanted apply.Object) (*guard.Operation, error) {
	if !k.Force {
		return nil, nil
	}
	o, err := k.prepare(wanted)
	if err != nil {
		return nil, err
	}
	if _, ok := k.unchanged(o); ok {
		return nil, nil
	}
	if o, err = k.keepIgnoredFields(o); err != nil {
		return nil, err
	}
	_, refusal := k.objects.Apply(k.ctx, o, apply.Options{DryRun: true})
	if refusal == nil {
		return nil, nil
	}
	live, err := k.objects.Unchangeable(k.ctx, o, refusal)
	if err != nil || live == nil || !k.ownsLive(apply.KeyOf(o), apply.MetadataOf(live)) {
		return nil, err
	}
	why := k.recreationReason(o, live)
	if why == "" {
		return nil, nil
	}
	return &guard.Operation{Verb: guard.Recreate, Key: apply.KeyOf(o), UID: live.GetUID(), Why: why}, nil
}

// recreationReason returns why the recreation of a live object needs an approval, empty if it
// needs none.
func (k *kubeClient) recreationReason(o apply.Object, live *unstructured.Unstructured) string {
	if why := k.rules().Reason(live); why != "" {
		return why
	}
	if guard.HasClaims(o.Unstructured) {
		return "its pods are deleted, and the new pods have claims"
	}
	if why := k.rules().Reason(o.Unstructured); why != "" || !k.approvesAll() {
		return why
	}
	return "the kind has approval: Always"
}

// scalingOf returns the scale-down of a StatefulSet that deletes claims, or nil.
func (k *kubeClient) scalingOf(c candidate, wanted apply.Object) (*guard.Operation, error) {
	if !guard.HasClaims(wanted.Unstructured) || !setsReplicas(wanted) && !setsReplicas(c.Object) || k.ignoresReplicas(wanted) {
		return nil, nil
	}
	prepared, err := k.prepare(wanted)
	if err != nil {
		return nil, err
	}
	if state, unchanged := k.unchanged(prepared); unchanged || state.Scaled && setsReplicas(c.Object) {
		return nil, nil
	}
	live, err := k.objects.Read(k.ctx, wanted)
	if err != nil || live == nil {
		return nil, err
	}
	why := guard.ScalingReason(live, wanted.Unstructured)
	if why == "" {
		return nil, nil
	}
	return &guard.Operation{Verb: guard.ScaleDown, Key: apply.KeyOf(wanted), UID: live.GetUID(), Why: why}, nil
}

// reason returns why a live object is guarded, empty if it is not. The content may be that
// of a manifest, or only the name.
func (k *kubeClient) reason(o apply.Object, live *metav1.PartialObjectMetadata) (string, error) {
	rules := k.rules()
	if apply.IsProtected(live) {
		return guard.Protected, nil
	}
	why := rules.Reason(o.Unstructured)
	if _, known, _ := unstructured.NestedFieldNoCopy(o.Object, "spec"); why != "" || known || o.GroupVersionKind().GroupKind() != guard.StatefulSet {
		return why, nil
	}
	whole, err := k.objects.Read(k.ctx, o)
	if err != nil || whole == nil {
		return "", err
	}
	return rules.Reason(whole), nil
}

// leaves reports whether an object that is not rendered any longer stays, because it is
// guarded and its deletion was not approved: the action is not an upgrade or a rollback
// that a user requests, or the object was protected after the approval. An event reports
// the object.
func (k *kubeClient) leaves(o apply.Object, live *metav1.PartialObjectMetadata) (bool, error) {
	key := apply.KeyOf(o)
	if k.uninstalls || !k.enforces() || k.approves(key, live.UID) || live.DeletionTimestamp != nil {
		return false, nil
	}
	if !k.ownsLive(key, live) {
		return false, nil
	}
	why, err := k.reason(o, live)
	if err != nil || why == "" {
		return false, err
	}
	k.reportOnce(api.EventObjectLeft, fmt.Sprintf("%s is not rendered any longer, and is not deleted without an approval: %s. The next upgrade asks for the approval", key, why))
	return true, nil
}

// mayRecreate reports whether a forced action deletes a live object and creates it again. A
// guarded object needs an approval, and with approval: Always every object.
func (k *kubeClient) mayRecreate(o apply.Object, live *unstructured.Unstructured) bool {
	return !k.enforces() && !k.approvesAll() || k.approves(apply.KeyOf(o), live.GetUID()) || k.recreationReason(o, live) == ""
}

// keepReplicas returns a StatefulSet without a scale-down that deletes claims and is not
// approved: drift corrections, verifications and automatic rollbacks wait for no approval, and
// the replicas may have changed since the approval was checked. A StatefulSet with claim
// templates is read for that.
//
// If another client has set the replicas, they stay drift. If the operator has set them, in a
// revision that failed, it keeps them.
func (k *kubeClient) keepReplicas(o apply.Object, options apply.Options) (apply.Object, error) {
	if !guard.HasClaims(o.Unstructured) || options.UID == "" || options.LeaveReplicas || !k.enforces() || k.approves(apply.KeyOf(o), options.UID) {
		return o, nil
	}
	live, err := k.objects.Read(k.ctx, o)
	if err != nil || live == nil {
		return o, err
	}
	why := guard.ScalingReason(live, o.Unstructured)
	if why == "" || !setsReplicas(o) && !apply.SetsReplicas(live) {
		// The replicas of others stay.
		return o, nil
	}
	o.Unstructured = o.DeepCopy()
	unstructured.RemoveNestedField(o.Object, "spec", "ordinals")
	if ordinals, set, _ := unstructured.NestedMap(live.Object, "spec", "ordinals"); set {
		_ = unstructured.SetNestedMap(o.Object, ordinals, "spec", "ordinals")
	}
	if !apply.SetsReplicas(live) {
		unstructured.RemoveNestedField(o.Object, "spec", "replicas")
		k.withheld[apply.KeyOf(o)] = why
		return o, apply.SetDigest(o.Unstructured)
	}
	value, _, err := unstructured.NestedFieldCopy(live.Object, "spec", "replicas")
	if err == nil {
		err = unstructured.SetNestedField(o.Object, value, "spec", "replicas")
	}
	if err == nil {
		err = apply.SetDigest(o.Unstructured)
	}
	if err == nil && o.GetAnnotations()[api.AnnotationApplied] != live.GetAnnotations()[api.AnnotationApplied] {
		k.reportOnce(api.EventObjectLeft, fmt.Sprintf("%s keeps its replicas, because a scale-down needs an approval: %s. The next upgrade asks for the approval", apply.Describe(o.Unstructured), why))
	}
	return o, err
}

// ignoresReplicas reports whether the kind ignores the replicas of an object, so that an apply
// does not change them.
func (k *kubeClient) ignoresReplicas(o apply.Object) bool {
	return slices.ContainsFunc(ignored(k.Ignore, o.Unstructured), func(path []string) bool {
		return slices.Equal(path, []string{"spec", "replicas"}) || slices.Equal(path, []string{"spec"})
	})
}

// withheldError returns an error with the scale-downs that a drift correction did not carry
// out, or nil.
func (k *kubeClient) withheldError() error {
	if len(k.withheld) == 0 {
		return nil
	}
	var why []string
	for _, key := range sortedKeys(k.withheld) {
		why = append(why, key.String()+": "+k.withheld[key])
	}
	return fmt.Errorf("%w: replicas that others have changed are not corrected, because that deletes claims: %s. To delete the claims, scale the StatefulSet down with kubectl. To keep the replicas, set them in the spec",
		ErrApprovalRequired, strings.Join(why, "; "))
}
