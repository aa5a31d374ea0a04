package release_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

// secret returns the changed metadata of a release record of this operator.
func secret(change func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace:         "apps",
		Name:              "sh.helm.release.v1.web.v3",
		UID:               "secret-uid",
		ResourceVersion:   "17",
		CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		Labels: map[string]string{
			"name": "web", "owner": "helm", "status": "deployed", "version": "3",
			api.LabelOwnerUID:    "cr-uid",
			api.LabelOperator:    "chartwright",
			api.LabelAction:      "action-1",
			api.LabelRevision:    "3",
			api.LabelInputDigest: "input",
			api.LabelChartDigest: "chart",
		},
		Annotations: map[string]string{
			api.AnnotationOwner:       "PodSet.app.example.com/apps/web",
			release.AnnotationRelease: `{"chart":"podset","chartVersion":"1.0.0","appVersion":"2","deployed":"2026-01-02T03:04:06Z","description":"Upgrade complete"}`,
		},
	}}
	if change != nil {
		change(m)
	}
	return m
}

func label(key, value string) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) { m.Labels[key] = value }
}

func TestFromMeta(t *testing.T) {
	r, ok := release.FromMeta(secret(nil))
	if !ok {
		t.Fatal("it is not a record")
	}
	type facts struct {
		Namespace, Secret, UID, ResourceVersion, Release, Status     string
		Revision                                                     int
		OwnerUID, Owner, Operator, InputDigest, ChartDigest          string
		Chart, ChartVersion, AppVersion, Description, Changed, Dated string
		Genuine                                                      bool
	}
	got := facts{
		r.Namespace, r.Secret, string(r.UID), r.ResourceVersion, r.Release, r.Status,
		r.Revision,
		string(r.OwnerUID), r.Owner, r.Operator, r.InputDigest, r.ChartDigest,
		r.Chart, r.ChartVersion, r.AppVersion, r.Description.Description,
		r.Changed.UTC().Format(time.RFC3339), r.Deployed.UTC().Format(time.RFC3339),
		r.Genuine(),
	}
	want := facts{
		"apps", "sh.helm.release.v1.web.v3", "secret-uid", "17", "web", "deployed",
		3,
		"cr-uid", "PodSet.app.example.com/apps/web", "chartwright", "input", "chart",
		"podset", "1.0.0", "2", "Upgrade complete",
		"2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z",
		true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFromMeta_RecordsOfOthers(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(*metav1.PartialObjectMetadata)
		record  bool
		genuine bool
	}{
		{"of the operator", nil, true, true},
		{"of the helm CLI, with copied labels", func(m *metav1.PartialObjectMetadata) {
			m.Name, m.Labels["version"] = "sh.helm.release.v1.web.v4", "4"
		}, true, false},
		{"of the operator, changed by the helm CLI", func(m *metav1.PartialObjectMetadata) { m.Annotations = nil }, true, false},
		{"of the helm CLI", func(m *metav1.PartialObjectMetadata) {
			m.Name = "sh.helm.release.v1.web.v1"
			m.Labels = map[string]string{"name": "web", "owner": "helm", "status": "deployed", "version": "1"}
			m.Annotations = nil
		}, true, false},
		{"a copy under another name", func(m *metav1.PartialObjectMetadata) { m.Name = "backup-of-web" }, false, false},
		{"a copy under the name of another revision", func(m *metav1.PartialObjectMetadata) { m.Name = "sh.helm.release.v1.web.v30" }, false, false},
		{"a copy under the name of another release", func(m *metav1.PartialObjectMetadata) { m.Name = "sh.helm.release.v1.db.v3" }, false, false},
		{"a revision label that is not a number", label(api.LabelRevision, "three"), true, false},
		{"no revision label", func(m *metav1.PartialObjectMetadata) { delete(m.Labels, api.LabelRevision) }, true, false},
		{"no owner", func(m *metav1.PartialObjectMetadata) { delete(m.Labels, api.LabelOwnerUID) }, true, false},
		{"an invalid annotation", func(m *metav1.PartialObjectMetadata) { m.Annotations[release.AnnotationRelease] = "{" }, true, true},
		{"no labels at all", func(m *metav1.PartialObjectMetadata) { m.Labels = nil }, false, false},
		{"a version that is not a number", label("version", "x"), false, false},
		{"no version", func(m *metav1.PartialObjectMetadata) { delete(m.Labels, "version") }, false, false},
		{"another tool's", label("owner", "chartwright-damaged"), false, false},
		{"no name", label("name", ""), false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, ok := release.FromMeta(secret(test.change))
			if ok != test.record {
				t.Fatalf("is a record: %v, want %v", ok, test.record)
			}
			if r.Genuine() != test.genuine {
				t.Errorf("genuine: %v, want %v", r.Genuine(), test.genuine)
			}
		})
	}
}

func TestFromMeta_ChangedIsLastWrite(t *testing.T) {
	r, _ := release.FromMeta(secret(func(m *metav1.PartialObjectMetadata) {
		m.Labels["createdAt"], m.Labels["modifiedAt"] = "1767323100", "1767323200"
	}))
	if got, want := r.Changed.Unix(), int64(1767323200); got != want {
		t.Errorf("changed at %d, want %d", got, want)
	}
}

// The store holds only the record and its name, because there are many records.
func TestCompact_KeepsRecord(t *testing.T) {
	full := secret(func(m *metav1.PartialObjectMetadata) {
		m.OwnerReferences = []metav1.OwnerReference{{UID: "other"}, {Kind: "Web", Name: "web", UID: "cr-uid", Controller: new(true)}}
	})
	compacted, err := release.Compact(full)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := release.Compact(compacted); err != nil || again != compacted {
		t.Errorf("compacted twice it is %v, %v", again, err)
	}
	m, err := meta.Accessor(compacted)
	if err != nil {
		t.Fatal(err)
	}
	if m.GetName() != full.Name || m.GetNamespace() != full.Namespace || m.GetUID() != full.UID || m.GetResourceVersion() != full.ResourceVersion {
		t.Errorf("the store reads %+v of %+v", m, full)
	}
	index := release.NewIndex(func(release.Record) {})
	index.Handler().OnAdd(compacted, true)
	want, _ := release.FromMeta(full)
	if want.Controller != "cr-uid" {
		t.Errorf("its controller is %q", want.Controller)
	}
	if diff := cmp.Diff([]release.Record{want}, index.OwnedBy(want.OwnerUID), cmp.AllowUnexported(release.Record{})); diff != "" {
		t.Errorf("(-full +compact):\n%s", diff)
	}
	if left, err := release.Compact("no object"); err != nil || left != "no object" {
		t.Errorf("Compact of something else: %v, %v", left, err)
	}
}

// Tenants can create Secrets that are no records, of any number and with any annotations.
func TestCompact_SecretThatIsNoRecordKeepsIdentity(t *testing.T) {
	other := secret(func(m *metav1.PartialObjectMetadata) { m.Name = "other" })
	other.Annotations["x/y"] = strings.Repeat("x", 250<<10)
	left, err := release.Compact(other)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(api.Identity(other), left); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFromMeta_LongOwnerIsNoOwner(t *testing.T) {
	long := strings.Repeat("x", 250<<10)
	r, ok := release.FromMeta(secret(func(m *metav1.PartialObjectMetadata) { m.Annotations[api.AnnotationOwner] = long }))
	if !ok || r.Owner != "" || r.Genuine() || !r.Stripped() {
		t.Errorf("owner of %d bytes, genuine %v, stripped %v", len(r.Owner), r.Genuine(), r.Stripped())
	}
	longest := strings.Repeat("k", 63) + "." + strings.Repeat("g", 253) + "/" + strings.Repeat("n", 63) + "/" + strings.Repeat("c", 253)
	if r, _ := release.FromMeta(secret(func(m *metav1.PartialObjectMetadata) { m.Annotations[api.AnnotationOwner] = longest })); r.Owner != longest {
		t.Errorf("owner %q", r.Owner)
	}
}
