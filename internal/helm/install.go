package helm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// Install installs a release that has no record, or only records of an uninstalled
// release. Before a retry it deletes the record of the failed first revision.
//
// If nothing was changed, the error is ErrInvalidValues, ErrRender, ErrNotAllowed or
// ErrConflict. Other errors are ErrStale if the index was behind, ErrTooLarge, and
// errors of the API server.
func (c *Client) Install(ctx context.Context, r Request) error {
	return c.apply(ctx, r, (*run).install)
}

func (r *run) install() error {
	if err := r.prepare(); err != nil {
		return err
	}
	if err := r.ensureNamespace(); err != nil {
		return err
	}
	failed, _ := r.splitFailed(r.repeatsInputs)
	if err := r.deleteRecords(failed); err != nil {
		return err
	}
	install := engine.NewInstall(r.config)
	install.ReleaseName = r.Release
	install.Namespace = r.Namespace
	install.Timeout = r.Timeout
	install.DisableHooks = r.DisableHooks
	install.Description = r.Description
	install.TakeOwnership = r.TakeOwnership
	install.SkipCRDs = true
	install.DisableOpenAPIValidation = true
	install.SkipSchemaValidation = true
	// The helm CLI may have kept the record of an uninstalled release. The release
	// then continues with the next revision.
	install.Replace = len(r.history()) > 0
	// Helm also renders revision 1 here, whatever revision it then stores.
	rendered, err := r.execute(r.prepared, 1)
	if err != nil {
		return r.classify(err)
	}
	return r.deploy(rendered, func() (*engine.Release, error) { return install.Run(rendered, r.Values) })
}

// prepare checks the values against the chart's schemas, prepares the chart for
// rendering, and installs its CRDs.
func (r *run) prepare() error {
	if err := r.prepareChart(); err != nil {
		return err
	}
	return r.ensureCRDs(r.prepared.Chart)
}

// prepareChart checks the values against the chart's schemas, and prepares the chart for
// rendering.
func (r *run) prepareChart() (err error) {
	r.kube.rendered = true
	r.prepared, err = r.Chart.Prepare(r.Values, r.numbers(r.Integers))
	return err
}

// splitFailed returns the record of the newest revision, if that revision failed and this
// action repeats it, and the other records. The record is deleted, so that retries do not
// add to the history. Later actions find its objects by their labels.
func (r *run) splitFailed(repeats func(release.Record) bool) (failed, others []release.Record) {
	history := r.history()
	if len(history) == 0 || history[0].Status != api.StatusFailed || !history[0].Genuine() || !repeats(history[0]) {
		return nil, history
	}
	return history[:1], history[1:]
}

// deleteRecords deletes records.
func (r *run) deleteRecords(records []release.Record) error {
	for _, record := range records {
		if _, err := r.driver.Delete(record.Secret); err != nil {
			return err
		}
	}
	return nil
}

// repeatsInputs reports whether a revision has the inputs of this action.
func (r *run) repeatsInputs(failed release.Record) bool { return failed.InputDigest == r.Digests.Input }

// ensureNamespace creates the namespace of the release if the request says so. An
// existing namespace is not labeled, so an uninstall does not delete it. The operator's
// own account creates the namespace, because the service account of the release is in
// it.
func (r *run) ensureNamespace() error {
	if !r.CreateNamespace {
		return nil
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:        r.Namespace,
		Labels:      map[string]string{api.LabelCreatedFor: string(r.Owner.UID)},
		Annotations: map[string]string{api.AnnotationOwner: r.Owner.String()},
	}}
	if r.plan != nil {
		return r.planNamespace(namespace)
	}
	_, err := r.client.config.Clientset.CoreV1().Namespaces().Create(r.kube.ctx, namespace, metav1.CreateOptions{FieldManager: api.FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the release's namespace: %w", err)
	}
	return nil
}

// createdNamespace returns the namespace of the release if ensureNamespace created it and it is
// not being deleted, otherwise nil. A move leaves it.
func (r *run) createdNamespace() (*corev1.Namespace, error) {
	if !r.CreateNamespace || r.MoveTo != "" {
		return nil, nil
	}
	namespace, err := r.client.config.Clientset.CoreV1().Namespaces().Get(r.kube.ctx, r.Namespace, metav1.GetOptions{})
	switch {
	case apply.AnswerOf(err) == apply.Gone:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the release's namespace: %w", err)
	case !createdFor(namespace, r.Owner) || namespace.DeletionTimestamp != nil:
		return nil, nil
	}
	return namespace, nil
}

// keepNamespace keeps the namespace of the release, because an object stays in it. The label is
// removed before the object is released: after an interruption, nothing else may show the
// object.
func (r *run) keepNamespace() error {
	namespace, err := r.createdNamespace()
	if err != nil || namespace == nil {
		return err
	}
	patch := fmt.Sprintf(`{"metadata": {"uid": %q, "labels": {%q: null}}}`, namespace.UID, api.LabelCreatedFor)
	if _, err := r.client.config.Clientset.CoreV1().Namespaces().Patch(r.kube.ctx, r.Namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("keep the release's namespace, which contains objects that stay: %w", err)
	}
	r.reportNamespace("objects that stay")
	return nil
}

// reportNamespace reports that the namespace of the release stays because of its content.
func (r *run) reportNamespace(content string) {
	r.Notifier.Warn(api.EventNamespaceKept, fmt.Sprintf("Namespace %s was created for this release and is not deleted because it contains %s", r.Namespace, content))
}

// removeNamespace deletes the namespace of the release if ensureNamespace created it, and it
// contains neither other releases nor claims, such as those of StatefulSets. It is called before
// the record is deleted, so that it is called again if the process ends.
func (r *run) removeNamespace() error {
	namespace, err := r.createdNamespace()
	if err != nil || namespace == nil {
		return err
	}
	others := r.client.config.Index.Releases(r.Namespace)
	delete(others, r.Release)
	if len(others) > 0 {
		r.reportNamespace("other releases: " + strings.Join(slices.Sorted(maps.Keys(others)), ", "))
		return nil
	}
	if claims, err := r.remainingClaims(); err != nil || claims != "" {
		if claims != "" {
			r.reportNamespace(claims)
		}
		return err
	}
	err = r.client.config.Clientset.CoreV1().Namespaces().Delete(r.kube.ctx, r.Namespace, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &namespace.UID}})
	if err != nil && apply.AnswerOf(err) != apply.Gone {
		return fmt.Errorf("delete the release's namespace: %w", err)
	}
	return nil
}

// remainingClaims describes the claims in the namespace of the release that are not being
// deleted, empty if there are none or the release is deleted with its data.
func (r *run) remainingClaims() (string, error) {
	if r.kube.onDelete() == watches.OnDeleteDelete {
		return "", nil
	}
	list, err := r.client.own.objects.Metadata.Resource(claims).Namespace(r.Namespace).List(r.kube.ctx, metav1.ListOptions{})
	if apply.AnswerOf(err) == apply.Forbidden {
		return fmt.Sprintf("claims, possibly: %v", err), nil
	}
	if err != nil {
		return "", fmt.Errorf("look for claims in the release's namespace: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			return "PersistentVolumeClaim " + list.Items[i].Name, nil
		}
	}
	return "", nil
}

// createdFor reports whether a namespace was created for the owner's release, possibly
// before the owner was restored from a backup.
func createdFor(namespace *corev1.Namespace, owner apply.Owner) bool {
	made := namespace.Labels[api.LabelCreatedFor]
	return made == string(owner.UID) || made != "" && namespace.Annotations[api.AnnotationOwner] == owner.String()
}
