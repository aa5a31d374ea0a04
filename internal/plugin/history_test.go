package plugin

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

// stored describes a release record.
type stored struct {
	number, status string
	labels         map[string]string
	// byHelm: created by the helm CLI.
	byHelm bool
	// approved is the digest of the approved plan.
	approved string
}

func historyOf(t *testing.T, revisions ...stored) []release.Record {
	t.Helper()
	history := make([]release.Record, 0, len(revisions))
	for _, r := range revisions {
		m := &metav1.ObjectMeta{
			Name: "sh.helm.release.v1.web.v" + r.number,
			Labels: map[string]string{
				release.LabelName: "web", release.LabelOwner: release.OwnerHelm, release.LabelVersion: r.number, release.LabelStatus: r.status,
				api.LabelOwnerUID: "uid", api.LabelRevision: r.number,
			},
			Annotations: map[string]string{release.AnnotationRelease: `{"chart":"box","chartVersion":"1.0.0","appVersion":"9","description":"Upgrade complete","deployed":"2026-01-02T03:04:05Z"}`},
		}
		if r.byHelm {
			m.Labels[api.LabelRevision] = "0"
		}
		if r.approved != "" {
			m.Annotations[release.AnnotationApproved] = r.approved
		}
		maps.Copy(m.Labels, r.labels)
		record, ok := release.FromMeta(m)
		if !ok {
			t.Fatalf("%v is not a release record", m)
		}
		history = append(history, record)
	}
	return history
}

func TestFromRecords_RollbackColumn(t *testing.T) {
	const yes, was, no = api.StatusDeployed, api.StatusSuperseded, api.StatusFailed
	neverReady := map[string]string{api.LabelNeverReady: "true"}
	held := func(revision string) map[string]string { return map[string]string{api.LabelHeldRevision: revision} }
	for _, test := range []struct {
		name    string
		history []stored
		// want is the column ROLLBACK, newest first, with the held revision in brackets.
		want string
	}{
		{"one revision", []stored{{number: "1", status: yes}}, "-"},
		{"several revisions", []stored{{number: "3", status: yes}, {number: "2", status: was}, {number: "1", status: was}}, "- previous yes"},
		{"failed upgrade", []stored{{number: "3", status: no}, {number: "2", status: yes}, {number: "1", status: was}}, "- previous yes"},
		{"never ready", []stored{{number: "3", status: yes}, {number: "2", status: was, labels: neverReady}, {number: "1", status: was}}, "- yes previous"},
		{"never deployed", []stored{{number: "3", status: yes}, {number: "2", status: no}, {number: "1", status: was}}, "- - previous"},
		{"held", []stored{{number: "4", status: yes, labels: held("2")}, {number: "3", status: was}, {number: "2", status: was}, {number: "1", status: was}}, "- yes [yes] previous"},
		{"created by helm", []stored{{number: "2", status: yes, byHelm: true}, {number: "1", status: was}}, "- previous"},
	} {
		revisions := fromRecords(historyOf(t, test.history...), 0)
		var got []string
		for _, r := range revisions {
			word := r.rollback()
			if r.Held {
				word = "[" + word + "]"
			}
			got = append(got, word)
		}
		if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestFromRecords_DeployedRevisionIsPreviousAfterFailedUpgrade(t *testing.T) {
	revisions := fromRecords(historyOf(t, stored{number: "2", status: api.StatusFailed}, stored{number: "1", status: api.StatusDeployed}), 0)
	if !revisions[1].Previous || !revisions[1].RollbackTo || revisions[0].RollbackTo {
		t.Errorf("revisions are %+v", revisions)
	}
}

func TestHistory_PreviousOfTheStatusIsShown(t *testing.T) {
	records := historyOf(t, stored{number: "2", status: api.StatusDeployed}, stored{number: "1", status: api.StatusSuperseded})
	status := api.Status{Previous: 2, History: []api.HistoryEntry{{Revision: 2, Status: api.StatusDeployed}, {Revision: 1, Status: api.StatusSuperseded}}}
	for name, revisions := range map[string][]revisionOutput{"records": fromRecords(records, status.Previous), "status": fromStatus(status)} {
		if got := revisions[0].rollback() + " " + revisions[1].rollback(); got != "previous yes" || !revisions[0].RollbackTo {
			t.Errorf("from the %s, the column ROLLBACK is %q: %+v", name, got, revisions)
		}
	}
}

func TestHistoryTable(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 14, 5, 0, time.UTC)
	revisions := fromRecords(historyOf(t,
		stored{number: "3", status: api.StatusDeployed, byHelm: true},
		stored{number: "2", status: api.StatusSuperseded, labels: map[string]string{api.LabelHeldRevision: "1", api.LabelNeverReady: "true"}, approved: "3f6c0a9d1e5b7284"},
		stored{number: "1", status: api.StatusSuperseded},
	), 0)
	out := historyTable(revisions, at)
	const want = `
REVISION   AGE   STATUS       CHART       APP   ROLLBACK   DESCRIPTION
3          10m   deployed     box-1.0.0   9     -          Upgrade complete; created by helm, not by the operator
2          10m   superseded   box-1.0.0   9     yes        Upgrade complete; plan 3f6c0a9d1e5b7284 approved; never became ready
1          10m   superseded   box-1.0.0   9     yes        Upgrade complete; held
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHistory_Approved(t *testing.T) {
	revisions := fromRecords(historyOf(t, stored{number: "2", status: api.StatusDeployed, approved: "3f6c0a9d1e5b7284"}, stored{number: "1", status: api.StatusSuperseded}), 0)
	for i, want := range []string{"3f6c0a9d1e5b7284", ""} {
		out, err := json.Marshal(revisions[i])
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Approved string }
		if err := json.Unmarshal(out, &got); err != nil || got.Approved != want || strings.Contains(string(out), `"approved"`) != (want != "") {
			t.Errorf("want approved %q in %s (error %v)", want, out, err)
		}
	}

	// Without the records, the description contains the plan once.
	status := api.Status{History: []api.HistoryEntry{{Revision: 2, Status: api.StatusDeployed, Description: "Upgrade complete; plan 3f6c0a9d1e5b7284 approved"}}}
	if got := fromStatus(status)[0].description(); got != status.History[0].Description {
		t.Errorf("the description is %q", got)
	}
}
