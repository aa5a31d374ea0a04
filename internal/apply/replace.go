package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/api"
)

// DataKinds are kinds whose objects contain data that would be lost with them. Such objects are
// never recreated.
var DataKinds = []schema.GroupKind{
	{Kind: "PersistentVolumeClaim"},
	{Kind: "PersistentVolume"},
	{Kind: "Namespace"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
}

// Unchangeable returns the live object if the API server rejected a change of it that it would
// accept as a new object, and nil otherwise. It checks this by a dry run with another name. It
// returns nil for objects of the kinds DataKinds, for objects with the policy "keep", and
// if the rejection names no field: an admission policy may forbid all changes.
func (c Client) Unchangeable(ctx context.Context, o Object, refusal error) (*unstructured.Unstructured, error) {
	if len(refusedFields(refusal)) == 0 || slices.Contains(DataKinds, o.GroupVersionKind().GroupKind()) {
		return nil, nil
	}
	live, err := c.Read(ctx, o)
	if err != nil || live == nil || HasKeepPolicy(live) || HasKeepPolicy(o) {
		return nil, err
	}
	err = c.DryRunCreate(ctx, o, live)
	if answer := AnswerOf(err); answer == Refused || answer == Forbidden {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return live, nil
}

// DryRunCreate dry-runs the creation of the object in place of the live object, with another
// name, and returns the error of the API server. The error contains the name of the object
// itself. The live object is nil if it does not exist.
func (c Client) DryRunCreate(ctx context.Context, o Object, live *unstructured.Unstructured) error {
	o, _ = o.inServedVersion(nil)
	probe := Object{Unstructured: o.DeepCopy(), Mapping: o.Mapping}
	name := o.GetName()
	probe.SetName(strings.TrimRight(name[:min(len(name), 40)], "-.") + "-" + rand.String(5))
	omitAddresses(probe.Unstructured, live)
	_, err := c.patch(ctx, probe, api.FieldManager, Options{DryRun: true})
	if refusal, ok := errors.AsType[*apierrors.StatusError](err); ok {
		refusal.ErrStatus.Message = strings.ReplaceAll(refusal.ErrStatus.Message, probe.GetName(), name)
	}
	return err
}

// Propagation returns how a replacement deletes the dependents of the live object: all of them,
// except the pods of a StatefulSet, which the new StatefulSet adopts. No controller adds a claim
// to a pod, so the pods are deleted too if the new StatefulSet has a claim template more, unless
// that would delete claims. The note is the effect on such pods.
func Propagation(o Object, live *unstructured.Unstructured) (policy metav1.DeletionPropagation, note string) {
	if o.GetAPIVersion() != "apps/v1" || o.GetKind() != "StatefulSet" {
		return metav1.DeletePropagationBackground, ""
	}
	before := claimTemplates(live)
	if before.IsSuperset(claimTemplates(o.Unstructured)) {
		return metav1.DeletePropagationOrphan, ""
	}
	whenDeleted, _, _ := unstructured.NestedString(live.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	if len(before) > 0 && whenDeleted == "Delete" {
		return metav1.DeletePropagationOrphan, ". Its pods have no new claims until you delete the pods"
	}
	return metav1.DeletePropagationBackground, ". Its pods are deleted, too, because no claim can be added to a pod"
}

// claimTemplates returns the names of the claim templates of a StatefulSet.
func claimTemplates(set *unstructured.Unstructured) sets.Set[string] {
	names := sets.New[string]()
	templates, _, _ := unstructured.NestedFieldNoCopy(set.Object, "spec", "volumeClaimTemplates")
	list, _ := templates.([]any)
	for _, template := range list {
		fields, _ := template.(map[string]any)
		name, _, _ := unstructured.NestedString(fields, "metadata", "name")
		names.Insert(name)
	}
	return names
}

// Replace deletes the live object, which Unchangeable has returned, if it has the UID in the
// options, and creates it again. A Service keeps its addresses. The error is ErrReplaced if
// another client creates the object after the deletion. If the API server rejects the new
// object, Replace creates the live object again.
func (c Client) Replace(ctx context.Context, o Object, live *unstructured.Unstructured, options Options) (*metav1.PartialObjectMetadata, error) {
	if planned, err := c.planned(ctx, Recreate, o, o.Unstructured); planned {
		return MetadataOf(o.Unstructured), err
	}
	policy, _ := Propagation(o, live)
	if err := c.DeleteUID(ctx, o, options.UID, policy); err != nil {
		return nil, err
	}
	if err := c.WaitGone(ctx, o, options.UID); err != nil {
		return nil, err
	}
	options.UID = ""
	applied, err := c.createInPlace(ctx, o, live, options)
	switch {
	case err == nil:
		return applied, nil
	case AnswerOf(err) != Refused, o.GetKind() == "Job":
		// The previous Job would run again.
		return nil, fmt.Errorf("recreate: deleted, and not created again before the next attempt: %w", err)
	}
	if restoreErr := c.restore(ctx, o, live); restoreErr != nil {
		return nil, fmt.Errorf("recreate: deleted, and not created again: %w; the previous object cannot be created either: %w", err, restoreErr)
	}
	return nil, fmt.Errorf("recreate: the previous object was created again, because the API server rejected the new one: %w", err)
}

// createInPlace creates an object with the addresses of the deleted one, if the API server
// accepts them. The chart does not set them, so the next apply omits them, and the API server
// keeps them.
func (c Client) createInPlace(ctx context.Context, o Object, deleted *unstructured.Unstructured, options Options) (*metav1.PartialObjectMetadata, error) {
	if full, more := withAddresses(o, deleted); more {
		created, err := c.Apply(ctx, full, options)
		if err == nil {
			options.UID = created.GetUID()
		} else if AnswerOf(err) != Refused {
			return nil, err
		}
	}
	return c.Apply(ctx, o, options)
}

// restore creates a deleted object again. The API server assigns all fields of a new object to
// its creator, so the field managers are restored afterwards.
func (c Client) restore(ctx context.Context, o Object, deleted *unstructured.Unstructured) error {
	object := deleted.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	created, err := c.Create(ctx, Object{Unstructured: object, Mapping: o.Mapping})
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": created.GetUID(), "managedFields": deleted.GetManagedFields()}})
	if err != nil {
		return err
	}
	_, err = c.metadata(o).Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: api.FieldManager})
	return err
}

// The addresses and ports of a Service are unique, and the API server assigns those that the
// manifest does not set. A new Service gets others, unless the object names those of the old
// one. Not all types of Services may have them.

// visitAddresses calls visit for each address and port that a Service of its type may have in
// place of the live Service: with the map and the name of the field, and its value in the live
// Service. It does nothing for objects of other kinds.
func visitAddresses(service, live *unstructured.Unstructured, visit func(fields map[string]any, name string, value any)) {
	if live == nil || service.GetAPIVersion() != "v1" || service.GetKind() != "Service" {
		return
	}
	spec, _ := service.Object["spec"].(map[string]any)
	before, _ := live.Object["spec"].(map[string]any)
	if spec != nil && spec["type"] != "ExternalName" {
		visit(spec, "clusterIP", before["clusterIP"])
		// By default, a Service has one family of addresses.
		if policy := spec["ipFamilyPolicy"]; !unset(spec["clusterIPs"]) || !unset(policy) && policy == before["ipFamilyPolicy"] {
			visit(spec, "clusterIPs", before["clusterIPs"])
		}
	}
	if spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local" {
		visit(spec, "healthCheckNodePort", before["healthCheckNodePort"])
	}
	if spec["type"] != "LoadBalancer" && spec["type"] != "NodePort" {
		return
	}
	ports, _ := spec["ports"].([]any)
	oldPorts, _ := before["ports"].([]any)
	for _, item := range ports {
		port, ok := item.(map[string]any)
		for _, old := range oldPorts {
			if old, _ := old.(map[string]any); ok && port["name"] == old["name"] {
				visit(port, "nodePort", old["nodePort"])
			}
		}
	}
}

// unset reports whether the API server assigns a value instead of the given one.
func unset(value any) bool {
	return slices.Contains([]string{"<nil>", "", "0", "[]"}, fmt.Sprint(value))
}

// omitAddresses removes from a Service the addresses and ports that the live Service has. While
// it has them, the API server would reject another Service with them. The address None is no
// address.
func omitAddresses(service, live *unstructured.Unstructured) {
	visitAddresses(service, live, func(fields map[string]any, name string, value any) {
		if text := fmt.Sprint(value); text == fmt.Sprint(fields[name]) && !strings.Contains(text, "None") {
			delete(fields, name)
		}
	})
}

// withAddresses returns the object with the addresses and ports of a deleted Service that it
// does not set, and reports whether there are any.
func withAddresses(o Object, deleted *unstructured.Unstructured) (full Object, more bool) {
	full = Object{Unstructured: o.DeepCopy(), Mapping: o.Mapping}
	visitAddresses(full.Unstructured, deleted, func(fields map[string]any, name string, value any) {
		if unset(fields[name]) && !unset(value) && !strings.Contains(fmt.Sprint(value), "None") {
			fields[name], more = value, true
		}
	})
	return full, more
}
