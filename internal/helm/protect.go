package helm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/guard"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// ErrProtected marks an uninstall that deleted nothing, because the annotation
// api.AnnotationProtect protects an object. The error is a ProtectedError.
var ErrProtected = errors.New("the release is not uninstalled")

// ProtectedError is the error of an uninstall that protected objects stop.
type ProtectedError struct {
	// Objects holds the UIDs of the protected objects.
	Objects map[apply.Key]types.UID
	// moves reports that the release moves to another namespace.
	moves bool
}

// Error names the objects and what users can do.
func (e *ProtectedError) Error() string {
	names := make([]string, 0, len(e.Objects))
	for key := range e.Objects {
		names = append(names, key.String())
	}
	slices.Sort(names)
	if e.moves {
		return fmt.Sprintf("%v in its namespace, because the annotation %s protects %s. To delete the objects too, remove the annotation from them. To keep the release where it is, set the namespace back",
			ErrProtected, api.AnnotationProtect, strings.Join(names, ", "))
	}
	return fmt.Sprintf("%v, because the annotation %s protects %s. To delete the objects too, remove the annotation from them. To keep all objects of the release, set the annotation %s to %q on the custom resource",
		ErrProtected, api.AnnotationProtect, strings.Join(names, ", "), api.AnnotationDeletionPolicy, "orphan")
}

// Unwrap returns ErrProtected.
func (e *ProtectedError) Unwrap() error { return ErrProtected }

// refuseUninstall returns an error if the release is orphaned, if an object in the
// inventory is protected, or if the deletion of guarded objects or the move of the release
// needs an approval.
func (r *run) refuseUninstall(history []release.Record) error {
	if err := r.refuseOrphaned(history); err != nil {
		return err
	}
	if err := r.refuseProtected(nil); err != nil {
		return err
	}
	if err := r.approveDeletion(history); err != nil {
		return err
	}
	return r.approveMove(history)
}

// approveDeletion returns an ApprovalError if the uninstall waits for the approval of the
// deletion of guarded objects. What the approved plan does not name stays. So does everything
// in a namespace that is being deleted: its deletion must not wait.
func (r *run) approveDeletion(history []release.Record) error {
	if !r.kube.uninstallsAll() || r.kube.onDelete() != watches.OnDeleteApprove {
		return nil
	}
	operations, err := r.guardedOperations(history, nil)
	if err != nil || len(operations) == 0 {
		return err
	}
	plan := guard.Plan{Action: "uninstall", Operations: operations}
	if digest := plan.Digest(); r.Approve != digest {
		if terminating, err := r.anyTerminating(); terminating || err != nil {
			return err
		}
		return &ApprovalError{Plan: plan, command: r.approveCommand(digest), other: r.Approve != ""}
	}
	for _, operation := range operations {
		r.kube.approved[operation.Key] = operation.UID
	}
	return nil
}

// refuseProtected returns a ProtectedError if the uninstall would delete a protected
// object. It checks the objects in the inventory or, given a release, the objects in its
// manifest. In a namespace that is being deleted, no object is protected.
func (r *run) refuseProtected(rls *engine.Release) error {
	if r.Guard.Mode == watches.GuardOff || r.kube.uninstallsAll() && r.kube.onDelete() != watches.OnDeleteDelete {
		// With onDelete, protected objects stay, or their deletion is approved.
		return nil
	}
	objects, err := r.protectedObjects(rls)
	if err != nil || len(objects) == 0 {
		return err
	}
	refusal := &ProtectedError{Objects: objects, moves: r.MoveTo != ""}
	if r.Guard.Mode == watches.GuardWarn {
		r.kube.reportOnce(api.EventDataAtRisk, fmt.Sprintf("The uninstall deletes objects with the annotation %s: guard.mode is Warn in the watches file", api.AnnotationProtect))
		return nil
	}
	if terminating, err := r.anyTerminating(); terminating || err != nil {
		return err
	}
	return refusal
}

// anyTerminating reports whether the namespace of the release or of the custom resource is
// being deleted.
func (r *run) anyTerminating() (bool, error) {
	terminating, err := r.client.Terminating(r.kube.ctx, r.Namespace)
	if terminating || err != nil || r.Owner.Namespace == "" || r.Owner.Namespace == r.Namespace {
		return terminating, err
	}
	return r.client.Terminating(r.kube.ctx, r.Owner.Namespace)
}

// protectedObjects returns the protected objects that the uninstall would delete. An
// uninstall keeps objects only if their policy keep is in the manifest.
func (r *run) protectedObjects(rls *engine.Release) (map[apply.Key]types.UID, error) {
	found, kept := map[apply.Key]types.UID{}, map[apply.Key]types.UID{}
	for _, state := range r.kube.inventory.OwnedBy(r.Owner.UID) {
		switch {
		case !state.Protected || state.Deleting:
		case state.Kept:
			kept[state.Key] = state.UID
		default:
			found[state.Key] = state.UID
		}
	}
	if rls == nil || len(kept) == 0 && !strings.Contains(rls.Manifest, api.AnnotationProtect) {
		return found, nil
	}
	objects, err := r.kube.builder.shared(rls.Manifest)
	if err != nil {
		return nil, err
	}
	for _, info := range objects {
		o := object(info)
		key := apply.KeyOf(o)
		if isHook(info) || apply.HasKeepPolicy(o) {
			continue
		}
		if uid, is := kept[key]; is {
			found[key] = uid
		}
		if _, managed := r.kube.managed(key); managed || !apply.IsProtected(o) {
			continue
		}
		live, err := r.kube.objects.Get(r.kube.ctx, o)
		switch {
		case apierrors.IsForbidden(err):
			// The deletion will be forbidden, too.
		case err != nil:
			return nil, err
		case live == nil, live.DeletionTimestamp != nil, !apply.IsProtected(live), r.kube.owns(key, live) != nil:
		default:
			found[key] = live.UID
		}
	}
	return found, nil
}

// Terminating reports whether a namespace is being deleted or does not exist. The API server
// rejects every new object there, so a dry run shows it, without the permission to read
// namespaces.
func (c *Client) Terminating(ctx context.Context, namespace string) (bool, error) {
	probe := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "chartwright-probe-"}}
	_, err := c.config.Clientset.CoreV1().Secrets(namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch apply.AnswerOf(err) {
	case apply.Terminating, apply.Gone:
		return true, nil
	case apply.Forbidden, apply.Refused:
		return false, nil
	default:
		return false, err
	}
}
