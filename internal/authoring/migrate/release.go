package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/release"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// readRecords reads the metadata of all release records. The index is nil if the
// user lacks the permission.
func (k *kindCheck) readRecords(ctx context.Context) (*release.Index, error) {
	index := release.NewIndex(nil)
	for _, namespace := range k.namespaces {
		list, err := k.objects.Metadata.Resource(secrets).Namespace(namespace).List(ctx, metav1.ListOptions{
			LabelSelector: labels.Set{release.LabelOwner: release.OwnerHelm}.String(),
			FieldSelector: "type=" + release.SecretType,
		})
		if apierrors.IsForbidden(err) {
			k.forbidden(secrets.GroupResource(), "list", "to look at the records of releases"+in(namespace))
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if record, ok := release.FromMeta(&list.Items[i]); ok {
				index.Put(record)
			}
		}
	}
	return index, nil
}

// findHistory returns the records of the release of a custom resource, newest
// revision first. The release is inherited if the operator-sdk has installed it
// for this custom resource, and taken if it has installed it for another one.
func findHistory(index *release.Index, cr *unstructured.Unstructured, name string) (history []release.Record, inherited, taken bool) {
	if history = index.ControlledBy(cr.GetUID()); len(history) > 0 {
		return history, true, false
	}
	history = index.History(cr.GetNamespace(), name)
	return history, false, slices.ContainsFunc(history, func(r release.Record) bool { return r.Controller != "" })
}

// release adds the findings about the release of the custom resource and the
// objects that it renders. If the CRD refuses the custom resource, a refusal by
// the chart's schema is not reported again.
func (r *resourceCheck) release(ctx context.Context, refused bool) error {
	given, err := values.FromSpec(r.cr.Object)
	if err != nil {
		r.addf(Breaks, "", "%v", err)
		return nil
	}
	if r.records == nil {
		return nil
	}
	given = values.Merge(given, r.kind.Overrides)
	var stored *release.Stored
	names := catalog.ReleaseNames(r.cr.GetName(), r.kind.Kind)
	name := names[0]
	history, inherited, taken := findHistory(r.records, r.cr, name)
	switch {
	case len(history) == 0:
		r.addf(Works, "", "it has no release yet, and gets its first")
	case taken:
		name = names[1]
		r.addf(Changes, "", "it has no release, and its name is taken by that of another custom resource: its own is called <name>-%s", strings.ToLower(r.kind.Kind))
	default:
		if stored, err = r.read(ctx, history[0]); stored == nil {
			return err
		}
		name = stored.Release
		r.adoption(stored, inherited, values.Normalize(given))
	}
	rendered, err := r.render(ctx, stored, name, given)
	switch {
	case errors.Is(err, chart.ErrInvalidValues) && refused:
		return nil
	case err != nil:
		r.unrendered("", err)
		return nil
	}
	return r.dryRun(ctx, name, stored != nil, rendered)
}

// read reads a whole record, nil if it cannot be read.
func (r *resourceCheck) read(ctx context.Context, record release.Record) (*release.Stored, error) {
	secret, err := r.typed.CoreV1().Secrets(record.Namespace).Get(ctx, record.Secret, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		r.forbidden(secrets.GroupResource(), "get", "to read the records of releases")
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record %s/%s: %w", record.Namespace, record.Secret, err)
	}
	stored, err := release.ReadRecord(secret)
	if errors.Is(err, release.ErrCorrupt) {
		r.addf(ToDo, "", "the record of its release cannot be read: %v", err).
			Do = "nothing: it is set aside, and the release goes on from the spec as revision 1"
		return nil, nil
	}
	return stored, err
}

// render renders an upgrade of the stored revision or, without one, an install.
func (r *resourceCheck) render(ctx context.Context, stored *release.Stored, name string, given map[string]any) (*chart.Rendered, error) {
	loaded := r.kind.Chart
	if stored != nil {
		return helm.DryRunUpgrade(ctx, loaded, helm.Trial{Over: stored, Newest: stored.Revision, Values: given, Config: r.config})
	}
	return loaded.Render(chart.Offline{Release: name, Namespace: r.cr.GetNamespace(), Values: given, KubeVersion: r.kubeVersion, APIVersions: loaded.Features.APIs})
}

// adoption adds a finding about how the release is adopted: as it is, by another
// revision, or not at all. An inherited release is one that the operator-sdk has
// installed for this custom resource.
func (r *resourceCheck) adoption(stored *release.Stored, inherited bool, given map[string]any) {
	chart := r.kind.Chart
	switch {
	case stored.Chart != chart.Name() && !inherited:
		r.addf(Breaks, "", "there is a release of its name, which is of the chart %s and not of %s, and of no custom resource: a second one would be made, called <name>-%s", stored.Chart, chart.Name(), strings.ToLower(r.kind.Kind)).
			Do = "rename the chart as it was, or uninstall that release first"
		return
	case strings.HasPrefix(stored.Status, "pending-"):
		r.addf(ToDo, "", "an action runs on its release, or was cut short (revision %d is %s)", stored.Revision, stored.Status).
			Do = "let the old operator end it; if nothing runs, it is recorded as failed after the entry's timeout, and done again"
		return
	case stored.Status == api.StatusUninstalling:
		r.addf(ToDo, "", "its release is being uninstalled").Do = "let the old operator end that before it stops"
		return
	}
	var reasons []string
	if stored.Status != api.StatusDeployed {
		reasons = append(reasons, "the newest revision is "+stored.Status)
	}
	if stored.Chart != chart.Name() {
		reasons = append(reasons, fmt.Sprintf("the chart is %s, and the release's %s", chart.Name(), stored.Chart))
	}
	if stored.ChartVersion != chart.Version() {
		reasons = append(reasons, fmt.Sprintf("the chart's version is %s, and the release's %s", chart.Version(), stored.ChartVersion))
	}
	if before := values.Retype(stored.Values, r.kind.Overrides); values.Digest(before) != values.Digest(given) {
		reasons = append(reasons, "these values are not those of the release: "+strings.Join(differences(before, given, ""), ", "))
	}
	if len(reasons) > 0 {
		r.addf(Changes, "", "its release gets one more revision when it is taken over: %s", strings.Join(reasons, "; "))
		return
	}
	r.addf(Works, "", "its release is taken over as it is, with no new revision")
}
