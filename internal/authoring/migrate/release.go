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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/release"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// readRecords indexes the metadata of all release records. It returns nil if the user
// does not have the permission.
func (k *kindCheck) readRecords(ctx context.Context) (*release.Index, error) {
	index := release.NewIndex(nil)
	for _, namespace := range k.namespaces {
		err := release.List(ctx, k.objects.Metadata, namespace, nil, index.Put)
		if apierrors.IsForbidden(err) {
			k.forbidden(secrets.GroupResource(), "list", "to read the release records"+in(namespace))
			return nil, nil
		}
		if err != nil {
			return nil, err
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

// release adds the findings about the release of the custom resource and its rendered
// objects. If the CRD already rejects the custom resource, errors of the chart's
// schema are not reported again.
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
		r.addf(Works, "", "there is no release yet: Chartwright installs it")
	case taken:
		name = names[1]
		r.addf(Changes, "", "there is no release yet, and another custom resource uses the release name: Chartwright installs <name>-%s", strings.ToLower(r.kind.Kind))
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

// read returns a whole record, or nil and a finding if it cannot be read.
func (r *resourceCheck) read(ctx context.Context, record release.Record) (*release.Stored, error) {
	secret, err := r.typed.CoreV1().Secrets(record.Namespace).Get(ctx, record.Secret, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		r.forbidden(secrets.GroupResource(), "get", "to read the release records")
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read release record %s/%s: %w", record.Namespace, record.Secret, err)
	}
	stored, err := release.ReadRecord(secret)
	if errors.Is(err, release.ErrCorrupt) {
		r.addf(ToDo, "", "the release record cannot be read: %v", err).
			Do = "nothing: Chartwright sets the record aside, and deploys the spec as revision 1"
		return nil, nil
	}
	return stored, err
}

// render renders an upgrade of the stored revision, or an install without a revision.
func (r *resourceCheck) render(ctx context.Context, stored *release.Stored, name string, given map[string]any) (*chart.Rendered, error) {
	loaded := r.kind.Chart
	if stored != nil {
		return helm.DryRunUpgrade(ctx, loaded, helm.Trial{Over: stored, Newest: stored.Revision, Values: r.kind.TemplateNumbers().For(given), Config: r.config})
	}
	return loaded.Render(chart.Offline{Release: name, Namespace: r.cr.GetNamespace(), Values: given, Numbers: r.kind.TemplateNumbers(), KubeVersion: r.kubeVersion, APIVersions: loaded.Features.APIs})
}

// adoption adds a finding about how the release is adopted: unchanged, with a new
// revision, or not at all. An inherited release is one that the operator-sdk has
// installed for this custom resource.
func (r *resourceCheck) adoption(stored *release.Stored, inherited bool, given map[string]any) {
	chart := r.kind.Chart
	switch {
	case stored.Chart != chart.Name() && !inherited:
		r.addf(Breaks, "", "a release with this name exists, but its chart is %s and not %s, and no custom resource owns it: Chartwright would install a second release <name>-%s", stored.Chart, chart.Name(), strings.ToLower(r.kind.Kind)).
			Do = "restore the name of the chart, or uninstall that release first"
		return
	case strings.HasPrefix(stored.Status, "pending-"):
		r.addf(ToDo, "", "an action on the release is running or was interrupted (revision %d is %s)", stored.Revision, stored.Status).
			Do = "wait until the old operator has finished; if nothing is running, Chartwright marks the revision as failed after the entry's timeout, and repeats the action"
		return
	case stored.Status == api.StatusUninstalling:
		r.addf(ToDo, "", "the release is being uninstalled").Do = "wait until the old operator has finished, before you stop it"
		return
	}
	var reasons []string
	if stored.Status != api.StatusDeployed {
		reasons = append(reasons, "the newest revision is "+stored.Status)
	}
	if stored.Chart != chart.Name() {
		reasons = append(reasons, fmt.Sprintf("the chart is %s, and that of the release %s", chart.Name(), stored.Chart))
	}
	if stored.ChartVersion != chart.Version() {
		reasons = append(reasons, fmt.Sprintf("the chart version is %s, and that of the release %s", chart.Version(), stored.ChartVersion))
	}
	if before := values.Retype(stored.Values, r.kind.Overrides); values.Digest(before) != values.Digest(given) {
		reasons = append(reasons, "these values differ: "+strings.Join(values.Differences(before, given, ""), ", "))
	}
	if len(reasons) > 0 {
		r.addf(Changes, "", "the adoption of the release creates a revision: %s", strings.Join(reasons, "; "))
		return
	}
	r.addf(Works, "", "the release is adopted without a new revision")
}
