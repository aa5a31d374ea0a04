package helm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/release"
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
	install := action.NewInstall(r.config)
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
	return r.deploy(rendered, func() (*helmrelease.Release, error) { return install.Run(rendered, r.Values) })
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
	r.prepared, err = r.Chart.Prepare(r.Values)
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

// removeNamespace deletes the namespace of the release if ensureNamespace created it
// and it contains no other release. A move leaves it, with the objects that stay. It is called before the record is deleted, so that
// it is called again if the process ends.
func (c *Client) removeNamespace(ctx context.Context, r Request) error {
	if !r.CreateNamespace || r.MoveTo != "" {
		return nil
	}
	namespaces := c.config.Clientset.CoreV1().Namespaces()
	namespace, err := namespaces.Get(ctx, r.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read the release's namespace: %w", err)
	case !createdFor(namespace, r.Owner) || namespace.DeletionTimestamp != nil:
		return nil
	}
	others := c.config.Index.Releases(r.Namespace)
	delete(others, r.Release)
	if len(others) > 0 {
		r.Notifier.Warn(api.EventNamespaceKept, fmt.Sprintf("Namespace %s was created for this release and is not deleted because it contains other releases: %s", r.Namespace, strings.Join(slices.Sorted(maps.Keys(others)), ", ")))
		return nil
	}
	err = namespaces.Delete(ctx, r.Namespace, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &namespace.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the release's namespace: %w", err)
	}
	return nil
}

// createdFor reports whether a namespace was created for the owner's release, possibly
// before the owner was restored from a backup.
func createdFor(namespace *corev1.Namespace, owner apply.Owner) bool {
	made := namespace.Labels[api.LabelCreatedFor]
	return made == string(owner.UID) || made != "" && namespace.Annotations[api.AnnotationOwner] == owner.String()
}
