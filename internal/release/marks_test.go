package release_test

import (
	"maps"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

// anyMarks generates marks. Requests are identified by 16 hexadecimal digits.
func anyMarks() *rapid.Generator[release.Marks] {
	token := rapid.OneOf(rapid.Just(""), rapid.StringMatching("[0-9a-f]{16}"))
	return rapid.Custom(func(t *rapid.T) release.Marks {
		m := release.Marks{
			Rollback: token.Draw(t, "rollback"), Reconcile: token.Draw(t, "reconcile"), Force: token.Draw(t, "force"), Test: token.Draw(t, "test"),
			Refused: rapid.Bool().Draw(t, "refused"), ResumedChart: token.Draw(t, "resumed"),
		}
		if rapid.Bool().Draw(t, "held") {
			m.Held = &release.Held{
				Revision: rapid.IntRange(1, 1<<31).Draw(t, "revision"), From: rapid.IntRange(0, 1<<31).Draw(t, "from"),
				Spec: token.Draw(t, "spec"), Scale: rapid.SampledFrom([]string{"", "0", "3", "unset"}).Draw(t, "scale"), ByFailure: rapid.Bool().Draw(t, "by failure"),
			}
		}
		return m
	})
}

// carrying returns the record of revision 3 with additional labels. Empty labels are
// removed, as by a merge patch.
func carrying(t interface{ Fatal(args ...any) }, labels map[string]string) release.Record {
	r, ok := release.FromMeta(secret(func(m *metav1.PartialObjectMetadata) {
		maps.Copy(m.Labels, labels)
		m.Name = "sh.helm.release.v1.web.v" + m.Labels["version"]
		maps.DeleteFunc(m.Labels, func(_, value string) bool { return value == "" })
	}))
	if !ok {
		t.Fatal("it is not a record")
	}
	return r
}

func TestMarks_LabelsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, marks := anyMarks().Draw(t, "before"), anyMarks().Draw(t, "marks")
		// The new marks replace all earlier ones.
		labels := maps.Clone(before.Labels())
		maps.Copy(labels, marks.Labels())
		read := carrying(t, labels).Marks
		if diff := cmp.Diff(marks, read); diff != "" {
			t.Fatalf("(-written +read):\n%s", diff)
		}
		if maps.Equal(read.Labels(), before.Labels()) != cmp.Equal(marks, before) {
			t.Fatalf("%+v has the labels of %+v", read, before)
		}
		for key, value := range marks.Labels() {
			if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
				t.Fatalf("the API server rejects the label %s=%s: %v", key, value, problems)
			}
		}
	})
}

func TestMarks_InvalidLabels(t *testing.T) {
	held := release.Marks{Rollback: "r", Held: &release.Held{Revision: 2, From: 3, Spec: "s", ByFailure: true}}
	for _, test := range []struct {
		name       string
		key, value string
		want       release.Marks
	}{
		{"as they are", "", "", held},
		{"no revision", api.LabelHeldRevision, "", release.Marks{Rollback: "r"}},
		{"a revision that is not a number", api.LabelHeldRevision, "two", release.Marks{Rollback: "r"}},
		{"revision 0", api.LabelHeldRevision, "0", release.Marks{Rollback: "r"}},
		{"a negative revision", api.LabelHeldRevision, "-2", release.Marks{Rollback: "r"}},
		{"a revision out of range", api.LabelHeldRevision, "99999999999999999999", release.Marks{Rollback: "r"}},
		{"no replaced revision", api.LabelHeldFrom, "x", release.Marks{Rollback: "r", Held: &release.Held{Revision: 2, Spec: "s", ByFailure: true}}},
		{"no spec", api.LabelHeldSpec, "", release.Marks{Rollback: "r", Held: &release.Held{Revision: 2, From: 3, ByFailure: true}}},
		{"another reason", api.LabelHeldBy, "whim", release.Marks{Rollback: "r", Held: &release.Held{Revision: 2, From: 3, Spec: "s"}}},
		{"a chart", api.LabelResumedChart, "digest", release.Marks{Rollback: "r", Held: held.Held, ResumedChart: "digest"}},
		{"no request", api.LabelRollbackRequest, "", release.Marks{Held: held.Held}},
		{"an invalid refusal", api.LabelRollbackRefused, "yes", held},
	} {
		t.Run(test.name, func(t *testing.T) {
			labels := held.Labels()
			labels[test.key] = test.value
			if diff := cmp.Diff(test.want, carrying(t, labels).Marks); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMarksOf(t *testing.T) {
	record := func(revision int, request string, change func(*metav1.PartialObjectMetadata)) release.Record {
		r, ok := release.FromMeta(secret(func(m *metav1.PartialObjectMetadata) {
			m.Name = release.SecretName("web", revision)
			m.Labels["version"], m.Labels[api.LabelRevision] = strconv.Itoa(revision), strconv.Itoa(revision)
			m.Labels[api.LabelRollbackRequest] = request
			if change != nil {
				change(m)
			}
		}))
		if !ok {
			t.Fatal("it is not a record")
		}
		return r
	}
	copied := label(api.LabelRevision, "1") // The CLI's rollback to 1 takes its labels.
	for _, test := range []struct {
		name    string
		history []release.Record
		want    string
	}{
		{"no release", nil, ""},
		{"of the operator", []release.Record{record(2, "second", nil), record(1, "first", nil)}, "second"},
		{"the CLI has upgraded it", []release.Record{record(3, "second", label(api.LabelRevision, "2")), record(2, "second", nil)}, "second"},
		{"the CLI has rolled it back", []release.Record{record(3, "first", copied), record(2, "second", nil), record(1, "first", nil)}, "second"},
		{"the CLI has done so twice", []release.Record{record(4, "first", copied), record(3, "first", copied), record(2, "second", nil)}, "second"},
		{"the CLI changed a revision of the operator and kept only its labels", []release.Record{record(2, "second", func(m *metav1.PartialObjectMetadata) { m.Annotations = nil }), record(1, "first", nil)}, "second"},
		{"the newest has no marks", []release.Record{record(2, "", nil), record(1, "first", nil)}, ""},
		{"no revision of the operator", []release.Record{record(1, "first", func(m *metav1.PartialObjectMetadata) { delete(m.Labels, api.LabelOwnerUID) })}, ""},
		{"an invalid revision label", []release.Record{record(2, "second", label(api.LabelRevision, "x")), record(1, "first", nil)}, "first"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := release.MarksOf(test.history).Rollback; got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// Force and reconcile requests are answered only by a deployed revision, other requests
// by any revision.
func TestMarksOf_ForceAndReconcileNeedDeployment(t *testing.T) {
	record := func(revision int, status, request string) release.Record {
		number := strconv.Itoa(revision)
		return carrying(t, map[string]string{
			"version": number, api.LabelRevision: number, "status": status,
			api.LabelRollbackRequest: request, api.LabelReconcileRequest: request, api.LabelForceRequest: request, api.LabelTestRequest: request,
			api.LabelHeldRevision: "1", api.LabelHeldSpec: request,
		})
	}
	// The helm CLI copies the labels of the revision that it upgrades.
	byCLI := func(revision int, status, request string) release.Record {
		r := record(revision-1, status, request)
		r, _ = release.FromMeta(secret(func(m *metav1.PartialObjectMetadata) {
			maps.Copy(m.Labels, r.Marks.Labels())
			m.Name = release.SecretName("web", revision)
			m.Labels["version"], m.Labels[api.LabelRevision], m.Labels["status"] = strconv.Itoa(revision), strconv.Itoa(revision-1), status
		}))
		return r
	}
	const dep, sup, fai, pen, uni = api.StatusDeployed, api.StatusSuperseded, api.StatusFailed, api.StatusPendingUpgrade, api.StatusUninstalling
	for _, test := range []struct {
		name    string
		history []release.Record
		// answered is the answered force and reconcile request; tried is that of the
		// other requests.
		answered, tried string
	}{
		{"deployed", []release.Record{record(2, dep, "two"), record(1, sup, "one")}, "two", "two"},
		{"superseded by a revision without a record", []release.Record{record(2, sup, "two"), record(1, sup, "one")}, "two", "two"},
		{"failed", []release.Record{record(2, fai, "two"), record(1, dep, "one")}, "one", "two"},
		{"failed twice", []release.Record{record(3, fai, "three"), record(2, fai, "two"), record(1, dep, "one")}, "one", "three"},
		{"failed, after a revision without requests", []release.Record{record(3, fai, "three"), record(2, dep, ""), record(1, sup, "one")}, "", "three"},
		{"failed, and nothing was ever deployed", []release.Record{record(2, fai, "two"), record(1, fai, "one")}, "", "two"},
		{"pending", []release.Record{record(2, pen, "two"), record(1, dep, "one")}, "one", "two"},
		{"uninstalling", []release.Record{record(2, uni, "two"), record(1, sup, "one")}, "one", "two"},
		{"failed, after a deployed revision of the CLI", []release.Record{record(3, fai, "three"), byCLI(2, dep, "copied"), record(1, sup, "one")}, "one", "three"},
		{"a revision of the CLI after a failed one", []release.Record{byCLI(3, dep, "copied"), record(2, fai, "two"), record(1, sup, "one")}, "one", "two"},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := release.Marks{
				Rollback: test.tried, Test: test.tried, Held: &release.Held{Revision: 1, Spec: test.tried},
				Reconcile: test.answered, Force: test.answered,
			}
			before := test.history[0].Marks
			if diff := cmp.Diff(want, release.MarksOf(test.history)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, test.history[0].Marks); diff != "" {
				t.Errorf("the record has changed, too:\n%s", diff)
			}
		})
	}
}

// An invalid annotation is ignored.
func TestFromMeta_Tested(t *testing.T) {
	tested := func(text string) *release.Tested {
		r, _ := release.FromMeta(secret(func(m *metav1.PartialObjectMetadata) { m.Annotations[release.AnnotationTested] = text }))
		return r.Tested
	}
	if got := tested(`{"passed": true, "message": "All tests passed"}`); got == nil || !got.Passed || got.Message != "All tests passed" {
		t.Errorf("a valid annotation is read as %+v", got)
	}
	for _, broken := range []string{"", "{", "[]", `{"passed": "yes"}`} {
		if got := tested(broken); got != nil {
			t.Errorf("%q is read as %+v", broken, got)
		}
	}
}
