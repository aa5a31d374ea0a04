package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/release"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// recordIndex holds the newest record of each release by its namespace and
// name, and by the custom resource that controls it. The maps are nil where the
// records may not be read.
type recordIndex struct {
	byName  map[string]release.Record
	byOwner map[types.UID]release.Record
}

// readRecords reads what is stored of releases, by its metadata alone.
func (k *kindLook) readRecords(ctx context.Context) (recordIndex, error) {
	index := recordIndex{byName: map[string]release.Record{}, byOwner: map[types.UID]release.Record{}}
	for _, namespace := range k.namespaces {
		list, err := k.objects.Metadata.Resource(secrets).Namespace(namespace).List(ctx, metav1.ListOptions{
			LabelSelector: labels.Set{release.LabelOwner: release.OwnerHelm}.String(),
			FieldSelector: "type=" + release.SecretType,
		})
		if apierrors.IsForbidden(err) {
			k.forbidden(secrets.GroupResource(), "list", "to look at the records of releases"+in(namespace))
			return recordIndex{}, nil
		}
		if err != nil {
			return index, err
		}
		for i := range list.Items {
			index.add(&list.Items[i])
		}
	}
	return index, nil
}

func (x recordIndex) add(secret *metav1.PartialObjectMetadata) {
	record, ok := release.FromMeta(secret)
	if !ok {
		return
	}
	name := record.Namespace + "/" + record.Release
	if x.byName[name].Revision < record.Revision {
		x.byName[name] = record
	}
	if owner := metav1.GetControllerOfNoCopy(secret); owner != nil && x.byOwner[owner.UID].Revision < record.Revision {
		x.byOwner[owner.UID] = record
	}
}

// of returns the newest record of a custom resource's release, and whether the
// operator-sdk has made it for this very resource.
func (x recordIndex) of(cr *unstructured.Unstructured, kind string) (record release.Record, inherited, found bool) {
	if record, inherited = x.byOwner[cr.GetUID()]; inherited {
		return record, true, true
	}
	record, found = x.byName[cr.GetNamespace()+"/"+catalog.ReleaseNames(cr.GetName(), kind)[0]]
	return record, false, found
}

// controlled tells whether the operator-sdk has made a record for another
// custom resource.
func (x recordIndex) controlled(record release.Record) bool {
	for _, other := range x.byOwner {
		if other.Namespace == record.Namespace && other.Release == record.Release {
			return true
		}
	}
	return false
}

// release looks at what a custom resource has in the cluster, and what it
// renders. Of one that the CRD refuses it is no news that the schema does, too.
func (k *kindLook) release(ctx context.Context, cr *unstructured.Unstructured, refused bool) error {
	of := []string{resourceName(cr)}
	namespace := cr.GetNamespace()
	given, err := values.FromSpec(cr.Object)
	if err != nil {
		k.addf(Breaks, "", "%v", err).Resources = of
		return nil
	}
	given = values.Merge(given, k.kind.Overrides)
	var stored *release.Stored
	if k.records.byName == nil {
		return nil
	}
	names := catalog.ReleaseNames(cr.GetName(), k.kind.Kind)
	name := names[0]
	record, inherited, found := k.records.of(cr, k.kind.Kind)
	switch {
	case !found:
		k.addf(Works, "", "it has no release yet, and gets its first").Resources = of
	case !inherited && k.records.controlled(record):
		name = names[1]
		k.addf(Changes, "", "it has no release, and its name is taken by that of another custom resource: its own is called <name>-%s", strings.ToLower(k.kind.Kind)).Resources = of
	default:
		if stored, err = k.read(ctx, record, of); stored == nil {
			return err
		}
		name = stored.Release
		k.findings = append(k.findings, takenOver(k.kind, cr, stored, inherited, values.Normalize(given))...)
	}
	rendered, err := k.render(ctx, stored, name, namespace, given)
	if errors.Is(err, chart.ErrInvalidValues) && refused {
		return nil
	}
	if err != nil {
		k.unrendered("", err).Resources = of
		return nil
	}
	return k.rehearse(ctx, cr, name, stored != nil, rendered)
}

// read reads a record whole; nil where it cannot be had.
func (k *kindLook) read(ctx context.Context, record release.Record, of []string) (*release.Stored, error) {
	secret, err := k.typed.CoreV1().Secrets(record.Namespace).Get(ctx, record.Secret, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		k.forbidden(secrets.GroupResource(), "get", "to read the records of releases")
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record %s/%s: %w", record.Namespace, record.Secret, err)
	}
	stored, err := release.ReadRecord(secret)
	if errors.Is(err, release.ErrDamaged) {
		found := k.addf(ToDo, "", "the record of its release cannot be read: %v", err)
		found.Do, found.Resources = "nothing: it is set aside, and the release goes on from the spec as revision 1", of
		return nil, nil
	}
	return stored, err
}

// render renders an upgrade of what is stored or, where nothing is, an install.
func (k *kindLook) render(ctx context.Context, stored *release.Stored, name, namespace string, given map[string]any) (*chart.Rendered, error) {
	if stored != nil {
		return helm.DryRunUpgrade(ctx, k.kind.Chart, helm.Trial{Over: stored, Newest: stored.Revision, Values: given, Config: k.config})
	}
	return k.kind.Chart.Render(chart.Offline{Release: name, Namespace: namespace, Values: given, KubeVersion: k.kubeVersion, APIVersions: k.kind.Chart.Features.APIs})
}

// takenOver tells how a release is taken over: as it is, or by one revision
// more, or not at all. Inherited is one that the operator-sdk has made for this
// very custom resource.
func takenOver(kind catalog.Kind, cr *unstructured.Unstructured, stored *release.Stored, inherited bool, given map[string]any) []Finding {
	f := finder{topic: topicOf(kind)}
	of := []string{resourceName(cr)}
	switch {
	case stored.Chart != kind.Chart.Name() && !inherited:
		found := f.addf(Breaks, "", "there is a release of its name, which is of the chart %s and not of %s, and of no custom resource: a second one would be made, called <name>-%s", stored.Chart, kind.Chart.Name(), strings.ToLower(kind.Kind))
		found.Do, found.Resources = "rename the chart as it was, or uninstall that release first", of
		return f.findings
	case strings.HasPrefix(stored.Status, "pending-"):
		found := f.addf(ToDo, "", "an action runs on its release, or was cut short (revision %d is %s)", stored.Revision, stored.Status)
		found.Do, found.Resources = "let the old operator end it; if nothing runs, it is recorded as failed after the entry's timeout, and done again", of
		return f.findings
	case stored.Status == api.StatusUninstalling:
		found := f.addf(ToDo, "", "its release is being uninstalled")
		found.Do, found.Resources = "let the old operator end that before it stops", of
		return f.findings
	}
	var why []string
	if stored.Status != api.StatusDeployed {
		why = append(why, "the newest revision is "+stored.Status)
	}
	if stored.Chart != kind.Chart.Name() {
		why = append(why, fmt.Sprintf("the chart is %s, and the release's %s", kind.Chart.Name(), stored.Chart))
	}
	if stored.ChartVersion != kind.Chart.Version() {
		why = append(why, fmt.Sprintf("the chart's version is %s, and the release's %s", kind.Chart.Version(), stored.ChartVersion))
	}
	if before := values.Retype(stored.Values, kind.Overrides); values.Digest(before) != values.Digest(given) {
		why = append(why, "these values are not those of the release: "+strings.Join(differences(before, given, ""), ", "))
	}
	if len(why) > 0 {
		f.addf(Changes, "", "its release gets one more revision when it is taken over: %s", strings.Join(why, "; ")).Resources = of
		return f.findings
	}
	f.addf(Works, "", "its release is taken over as it is, with no new revision").Resources = of
	return f.findings
}
