package release_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

// full returns the metadata of revision 3 with all annotations, and stripped a later
// state from which the helm CLI has dropped them.
func full(version string) *metav1.PartialObjectMetadata {
	m := stored(3, "uid", version, api.StatusDeployed)
	m.Annotations[release.AnnotationInventory] = `{"digest":"d","kinds":["v1/ConfigMap"]}`
	m.Annotations[release.AnnotationTested] = `{"passed":true}`
	m.Annotations[release.AnnotationLookups] = "[]"
	return m
}

func stripped(version string) *metav1.PartialObjectMetadata {
	m := full(version)
	m.Annotations = nil
	return m
}

func TestRecord_Stripped(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*metav1.PartialObjectMetadata)
		want   bool
	}{
		{"with its annotations", nil, false},
		{"without", func(m *metav1.PartialObjectMetadata) { m.Annotations = nil }, true},
		{"another revision with our labels", func(m *metav1.PartialObjectMetadata) {
			m.Annotations, m.Labels["version"], m.Name = nil, "4", "sh.helm.release.v1.web.v4"
		}, false},
		{"without our labels", func(m *metav1.PartialObjectMetadata) {
			m.Annotations = nil
			delete(m.Labels, api.LabelOwnerUID)
		}, false},
	} {
		if got := record(t, secret(test.change)).Stripped(); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// The annotations are restored from the earlier state, and the status continues to
// report it.
func TestIndex_KeepsDataOfStrippedRecord(t *testing.T) {
	w := newWatched()
	w.OnAdd(full("10"), true)
	before := w.History("apps", "web")[0]
	if before.Inventory.Digest != "d" || before.Lookups != "[]" || before.Tested == nil || before.Chart == "" {
		t.Fatalf("it is %+v", before)
	}
	expect := func(when string) {
		t.Helper()
		now := w.History("apps", "web")[0]
		if now.Genuine() || !now.Stripped() {
			t.Errorf("%s: it is not stripped: %+v", when, now)
		}
		if diff := cmp.Diff([]any{before.Description, before.Inventory, before.Lookups, before.Tested}, []any{now.Description, now.Inventory, now.Lookups, now.Tested}); diff != "" {
			t.Errorf("%s (-before +now):\n%s", when, diff)
		}
	}
	w.OnUpdate(full("10"), stripped("11"))
	expect("when it is stripped")
	w.OnUpdate(stripped("11"), stripped("11"))
	expect("when the watch restarts")
	w.OnUpdate(stripped("11"), stripped("12"))
	expect("when it is written again")

	w.OnUpdate(stripped("12"), full("13"))
	if now := w.History("apps", "web")[0]; !now.Genuine() {
		t.Errorf("restored it is %+v", now)
	}
	failed := stripped("14")
	failed.Labels["status"] = api.StatusFailed
	w.OnUpdate(full("13"), failed)
	if now := w.History("apps", "web")[0]; now.Inventory.Digest != "" {
		t.Errorf("with another status it still has %+v", now.Inventory)
	}
}

// A tenant with write access to Secrets must not be able to fill the operator's memory with
// annotations of records.
func TestFromMeta_LimitsAnnotations(t *testing.T) {
	with := func(key, text string) release.Record {
		m := stored(3, "uid", "1", api.StatusDeployed)
		m.Annotations[key] = text
		return record(t, m)
	}
	kinds := func(n int, kind string) string {
		return `{"kinds":["` + strings.Repeat(kind+`","`, n) + kind + `"]}`
	}
	if got := with(release.AnnotationInventory, kinds(5000, "")).Inventory.Kinds; len(got) > 0 {
		t.Errorf("%d empty kinds are stored", len(got))
	}
	if got := with(release.AnnotationInventory, kinds(1000, "v1/A")).Inventory.Kinds; len(got) != 100 {
		t.Errorf("%d kinds are stored", len(got))
	}
	large := strings.Repeat("x", 20<<10)
	if got := with(release.AnnotationRelease, `{"description":"`+large+`"}`).Description.Description; got != "" {
		t.Errorf("a description of %d bytes is stored", len(got))
	}
	if got := with(release.AnnotationTested, `{"message":"`+large+`"}`).Tested; got != nil {
		t.Errorf("a message of %d bytes is stored", len(got.Message))
	}
	if got := with(release.AnnotationLookups, `["`+large+`"]`).Lookups; got != "" {
		t.Errorf("lookups of %d bytes are stored", len(got))
	}
}
