package records_test

import (
	"maps"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/records"
)

// anyMarks draws marks; a request is known by 16 hex digits.
func anyMarks() *rapid.Generator[records.Marks] {
	token := rapid.OneOf(rapid.Just(""), rapid.StringMatching("[0-9a-f]{16}"))
	return rapid.Custom(func(t *rapid.T) records.Marks {
		m := records.Marks{
			Rollback: token.Draw(t, "rollback"), Reconcile: token.Draw(t, "reconcile"), Force: token.Draw(t, "force"), Test: token.Draw(t, "test"),
			Refused: rapid.Bool().Draw(t, "refused"), ResumedChart: token.Draw(t, "resumed"),
		}
		if rapid.Bool().Draw(t, "held") {
			m.Held = &records.Held{
				Revision: rapid.IntRange(1, 1<<31).Draw(t, "revision"), From: rapid.IntRange(0, 1<<31).Draw(t, "from"),
				Spec: token.Draw(t, "spec"), Scale: rapid.SampledFrom([]string{"", "0", "3", "unset"}).Draw(t, "scale"), ByFailure: rapid.Bool().Draw(t, "by failure"),
			}
		}
		return m
	})
}

// carrying returns the record of revision 3 with these labels beside its own;
// empty ones are taken away, as a merge patch does.
func carrying(t interface{ Fatal(args ...any) }, labels map[string]string) records.Record {
	r, ok := records.FromMeta(secret(func(m *metav1.PartialObjectMetadata) {
		maps.Copy(m.Labels, labels)
		m.Name = "sh.helm.release.v1.web.v" + m.Labels["version"]
		maps.DeleteFunc(m.Labels, func(_, value string) bool { return value == "" })
	}))
	if !ok {
		t.Fatal("it is no record")
	}
	return r
}

func TestMarksAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, marks := anyMarks().Draw(t, "before"), anyMarks().Draw(t, "marks")
		// They take the place of what stood there before.
		labels := maps.Clone(before.Labels())
		maps.Copy(labels, marks.Labels())
		read := carrying(t, labels).Marks
		if diff := cmp.Diff(marks, read); diff != "" {
			t.Fatalf("(-written +read):\n%s", diff)
		}
		if !read.Equal(marks.Labels()) || read.Equal(before.Labels()) != cmp.Equal(marks, before) {
			t.Fatalf("%+v equals what it does not, or not itself", read)
		}
		for key, value := range marks.Labels() {
			if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
				t.Fatalf("the API server refuses the label %s=%s: %v", key, value, problems)
			}
		}
	})
}

func TestDamagedMarks(t *testing.T) {
	held := records.Marks{Rollback: "r", Held: &records.Held{Revision: 2, From: 3, Spec: "s", ByFailure: true}}
	for _, test := range []struct {
		name       string
		key, value string
		want       records.Marks
	}{
		{"as they are", "", "", held},
		{"no revision", api.LabelHeldRevision, "", records.Marks{Rollback: "r"}},
		{"a revision that is no number", api.LabelHeldRevision, "two", records.Marks{Rollback: "r"}},
		{"a revision that none has", api.LabelHeldRevision, "0", records.Marks{Rollback: "r"}},
		{"a revision below that", api.LabelHeldRevision, "-2", records.Marks{Rollback: "r"}},
		{"a revision beyond all numbers", api.LabelHeldRevision, "99999999999999999999", records.Marks{Rollback: "r"}},
		{"nothing that it took the place of", api.LabelHeldFrom, "x", records.Marks{Rollback: "r", Held: &records.Held{Revision: 2, Spec: "s", ByFailure: true}}},
		{"no spec", api.LabelHeldSpec, "", records.Marks{Rollback: "r", Held: &records.Held{Revision: 2, From: 3, ByFailure: true}}},
		{"another reason", api.LabelHeldBy, "whim", records.Marks{Rollback: "r", Held: &records.Held{Revision: 2, From: 3, Spec: "s"}}},
		{"a chart", api.LabelResumedChart, "digest", records.Marks{Rollback: "r", Held: held.Held, ResumedChart: "digest"}},
		{"no request", api.LabelRollbackRequest, "", records.Marks{Held: held.Held}},
		{"a refusal that is none", api.LabelRollbackRefused, "yes", held},
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

// TestMarksOf: those of the newest revision that we wrote count.
func TestMarksOf(t *testing.T) {
	record := func(revision int, request string, change func(*metav1.PartialObjectMetadata)) records.Record {
		r, ok := records.FromMeta(secret(func(m *metav1.PartialObjectMetadata) {
			m.Name = records.SecretName("web", revision)
			m.Labels["version"], m.Labels[api.LabelRevision] = strconv.Itoa(revision), strconv.Itoa(revision)
			m.Labels[api.LabelRollbackRequest] = request
			if change != nil {
				change(m)
			}
		}))
		if !ok {
			t.Fatal("it is no record")
		}
		return r
	}
	copied := label(api.LabelRevision, "1") // The CLI's rollback to 1 takes its labels.
	for _, test := range []struct {
		name    string
		history []records.Record
		want    string
	}{
		{"no release", nil, ""},
		{"ours", []records.Record{record(2, "second", nil), record(1, "first", nil)}, "second"},
		{"the CLI has upgraded it", []records.Record{record(3, "second", label(api.LabelRevision, "2")), record(2, "second", nil)}, "second"},
		{"the CLI has rolled it back", []records.Record{record(3, "first", copied), record(2, "second", nil), record(1, "first", nil)}, "second"},
		{"the CLI has done so twice", []records.Record{record(4, "first", copied), record(3, "first", copied), record(2, "second", nil)}, "second"},
		{"the CLI has changed ours, and kept its labels alone", []records.Record{record(2, "second", func(m *metav1.PartialObjectMetadata) { m.Annotations = nil }), record(1, "first", nil)}, "second"},
		{"the newest has none", []records.Record{record(2, "", nil), record(1, "first", nil)}, ""},
		{"none is ours", []records.Record{record(1, "first", func(m *metav1.PartialObjectMetadata) { delete(m.Labels, api.LabelOwnerUID) })}, ""},
		{"a revision label that somebody broke", []records.Record{record(2, "second", label(api.LabelRevision, "x")), record(1, "first", nil)}, "first"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := records.MarksOf(test.history).Rollback; got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestMarksOfWhatWasDeployed: a request to force or to verify is answered by what
// was deployed, and every other one by the try alone.
func TestMarksOfWhatWasDeployed(t *testing.T) {
	record := func(revision int, status, request string) records.Record {
		number := strconv.Itoa(revision)
		return carrying(t, map[string]string{
			"version": number, api.LabelRevision: number, "status": status,
			api.LabelRollbackRequest: request, api.LabelReconcileRequest: request, api.LabelForceRequest: request, api.LabelTestRequest: request,
			api.LabelHeldRevision: "1", api.LabelHeldSpec: request,
		})
	}
	// The CLI copies the labels of the revision that it upgrades.
	byCLI := func(revision int, status, request string) records.Record {
		r := record(revision-1, status, request)
		r, _ = records.FromMeta(secret(func(m *metav1.PartialObjectMetadata) {
			maps.Copy(m.Labels, r.Marks.Labels())
			m.Name = records.SecretName("web", revision)
			m.Labels["version"], m.Labels[api.LabelRevision], m.Labels["status"] = strconv.Itoa(revision), strconv.Itoa(revision-1), status
		}))
		return r
	}
	const dep, sup, fai, pen, uni = api.StatusDeployed, api.StatusSuperseded, api.StatusFailed, api.StatusPendingUpgrade, api.StatusUninstalling
	for _, test := range []struct {
		name    string
		history []records.Record
		// answered is the request to force and to verify that was answered, and
		// tried that of all others.
		answered, tried string
	}{
		{"deployed", []records.Record{record(2, dep, "two"), record(1, sup, "one")}, "two", "two"},
		{"superseded, and what superseded it is lost", []records.Record{record(2, sup, "two"), record(1, sup, "one")}, "two", "two"},
		{"failed", []records.Record{record(2, fai, "two"), record(1, dep, "one")}, "one", "two"},
		{"failed twice", []records.Record{record(3, fai, "three"), record(2, fai, "two"), record(1, dep, "one")}, "one", "three"},
		{"failed, and what ran before asked for nothing", []records.Record{record(3, fai, "three"), record(2, dep, ""), record(1, sup, "one")}, "", "three"},
		{"failed, and nothing was ever deployed", []records.Record{record(2, fai, "two"), record(1, fai, "one")}, "", "two"},
		{"pending", []records.Record{record(2, pen, "two"), record(1, dep, "one")}, "one", "two"},
		{"on its way out", []records.Record{record(2, uni, "two"), record(1, sup, "one")}, "one", "two"},
		{"failed, and what runs is the CLI's", []records.Record{record(3, fai, "three"), byCLI(2, dep, "copied"), record(1, sup, "one")}, "one", "three"},
		{"the CLI's, over what failed", []records.Record{byCLI(3, dep, "copied"), record(2, fai, "two"), record(1, sup, "one")}, "one", "two"},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := records.Marks{
				Rollback: test.tried, Test: test.tried, Held: &records.Held{Revision: 1, Spec: test.tried},
				Reconcile: test.answered, Force: test.answered,
			}
			before := test.history[0].Marks
			if diff := cmp.Diff(want, records.MarksOf(test.history)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, test.history[0].Marks); diff != "" {
				t.Errorf("the record has changed, too:\n%s", diff)
			}
		})
	}
}

// TestTestedIsReadOrAbsent: what somebody broke is no outcome.
func TestTestedIsReadOrAbsent(t *testing.T) {
	tested := func(text string) *records.Tested {
		r, _ := records.FromMeta(secret(func(m *metav1.PartialObjectMetadata) { m.Annotations[records.AnnotationTested] = text }))
		return r.Tested
	}
	if got := tested(`{"passed": true, "message": "All tests passed"}`); got == nil || !got.Passed || got.Message != "All tests passed" {
		t.Errorf("what is well formed is read as %+v", got)
	}
	for _, broken := range []string{"", "{", "[]", `{"passed": "yes"}`} {
		if got := tested(broken); got != nil {
			t.Errorf("%q is read as %+v", broken, got)
		}
	}
}
