package inventory

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

// jobState is a Job as it was last applied for web.
func jobState(uid types.UID) apply.State {
	s := applied("migrate")
	s.Group, s.Kind, s.UID = "batch", "Job", uid
	return s
}

func done(outcome string) *expiry { return &expiry{outcome: outcome} }

func TestExpiryOf(t *testing.T) {
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	job := func(ttl *int32, kind batchv1.JobConditionType, status corev1.ConditionStatus) *batchv1.Job {
		return &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made)},
			Spec:       batchv1.JobSpec{TTLSecondsAfterFinished: ttl},
			Status:     batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: kind, Status: status}}},
		}
	}
	if e := expiryOf(job(nil, batchv1.JobComplete, corev1.ConditionTrue)); e != nil {
		t.Errorf("a Job without a TTL: %+v", e)
	}
	for _, test := range []struct {
		kind   batchv1.JobConditionType
		status corev1.ConditionStatus
		want   string
	}{
		{batchv1.JobComplete, corev1.ConditionTrue, Complete},
		{batchv1.JobFailed, corev1.ConditionTrue, Failed},
		{batchv1.JobComplete, corev1.ConditionFalse, ""},
		{batchv1.JobSuspended, corev1.ConditionTrue, ""},
	} {
		if e := expiryOf(job(new(int32(60)), test.kind, test.status)); e.outcome != test.want || !e.earliest.Equal(made.Add(time.Minute)) {
			t.Errorf("%s=%s: %+v, want %q", test.kind, test.status, e, test.want)
		}
	}
}

// TestFinishedJob_GoneIsNotDrift: only a Job that has finished may be gone.
func TestFinishedJob_GoneIsNotDrift(t *testing.T) {
	past, future := time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	for _, test := range []struct {
		name string
		// last is the last that the watch showed of the Job, missed tells that it
		// did not show its deletion.
		last   *expiry
		missed bool
		drift  string
		ready  bool
	}{
		{"complete", done(Complete), false, "", true},
		{"failed", done(Failed), false, "", false},
		{"deleted before it finished", &expiry{earliest: past}, false, "migrate gone", false},
		{"deleted while nobody watched, and its TTL may have passed", &expiry{earliest: past}, true, "", true},
		{"deleted while nobody watched, and its TTL cannot have passed", &expiry{earliest: future}, true, "migrate gone", false},
		{"without a TTL", nil, false, "migrate gone", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newListened()
			s := jobState("first")
			l.Put(s)
			l.Expect(web, []apply.State{s})
			h := l.handler()
			if !test.missed {
				h.OnUpdate(nil, cachedObject{state: new(but(s, 11)), health: &healthy, expiry: test.last})
			}
			last := cachedObject{state: new(but(s, 12)), health: &healthy, expiry: test.last}
			l.observeJob(last.state, last.expiry, test.missed)
			l.observeDeletion(last.state, test.missed)
			if got := l.drifts(web); got != test.drift {
				t.Errorf("drift is %q, want %q", got, test.drift)
			}
			if found := l.Health(web, time.Now()); len(found.Unready) == 0 != test.ready {
				t.Errorf("not ready: %+v", found.Unready)
			}
			if (test.drift == "") != (len(l.JobOutcomes(web)) == 1) {
				t.Errorf("finished: %v", l.JobOutcomes(web))
			}
		})
	}
}

// TestFinishedJob_RunsAgainWithTheNextRevision: what has finished is one Job, and
// not the next of its name.
func TestFinishedJob_RunsAgainWithTheNextRevision(t *testing.T) {
	l := newListened()
	first := jobState("first")
	// It finishes before the action that has created it ends.
	l.Put(first)
	l.observeJob(&first, done(Complete), false)
	l.observeDeletion(new(but(first, 11)), false)
	l.Expect(web, []apply.State{first})
	if l.drifts(web) != "" || l.JobOutcome(web, first.Key, first.UID) != Complete {
		t.Errorf("drift %q, finished %v", l.drifts(web), l.JobOutcomes(web))
	}
	next := but(jobState("next"), 20)
	l.Put(next)
	l.Expect(web, []apply.State{next})
	l.observeDeletion(new(but(next, 21)), false)
	if l.drifts(web) != "migrate gone" || len(l.JobOutcomes(web)) > 0 {
		t.Errorf("drift %q, finished %v", l.drifts(web), l.JobOutcomes(web))
	}
	Inventory{Index: l.Index, Watches: NewWatches(l.Index, nil)}.Forget(web)
	l.Forget(other)
	if len(l.owners) > 0 || len(l.objects) > 0 {
		t.Errorf("the index holds %d owners and %d objects", len(l.owners), len(l.objects))
	}
}

// TestRecall_FinishedJobs: the next process knows from the record which Jobs have
// finished, whether they are still there or not.
func TestRecall_FinishedJobs(t *testing.T) {
	a, job := applied("a"), jobState("first")
	digest := apply.Digest([]apply.State{a})
	for _, test := range []struct {
		name string
		sees []apply.State
		done map[apply.Key]string
		want bool
	}{
		{"it is gone", []apply.State{a}, map[apply.Key]string{job.Key: Complete}, true},
		{"it is there", []apply.State{a, job}, map[apply.Key]string{job.Key: Complete}, true},
		{"the record does not name it", []apply.State{a, job}, nil, false},
		{"another object is gone", []apply.State{job}, map[apply.Key]string{job.Key: Complete}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newListened()
			for _, s := range test.sees {
				l.observe(new(s), &healthy)
			}
			if got := l.RestoreExpected(web, Recorded{Digest: digest, Finished: test.done}); got != test.want {
				t.Fatalf("recalled: %v, want %v", got, test.want)
			}
			if !test.want {
				return
			}
			l.observeDeletion(new(but(job, 12)), true)
			found := l.Health(web, time.Now())
			if l.drifts(web) != "" || found.Total != 2 || len(found.Unready) > 0 || len(l.JobOutcomes(web)) != 1 {
				t.Errorf("drift %q, %d objects, not ready %v, finished %v", l.drifts(web), found.Total, found.Unready, l.JobOutcomes(web))
			}
		})
	}
}
