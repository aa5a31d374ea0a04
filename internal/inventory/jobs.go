package inventory

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

// A Job with ttlSecondsAfterFinished is deleted by Kubernetes some time after it
// has finished. That is not drift: if the operator recreated the Job, it would
// run again. A Job that was deleted before it finished is drift as any object.

// How a Job finished.
const (
	Complete = string(batchv1.JobComplete)
	Failed   = string(batchv1.JobFailed)
)

// expiry is what is known of a Job with ttlSecondsAfterFinished.
type expiry struct {
	// outcome is Complete or Failed, and empty before the Job has finished.
	outcome string
	// earliest is the first moment at which Kubernetes may delete the Job.
	earliest time.Time
}

// expiryOf returns nil for a Job without ttlSecondsAfterFinished.
func expiryOf(job *batchv1.Job) *expiry {
	if job.Spec.TTLSecondsAfterFinished == nil {
		return nil
	}
	e := &expiry{earliest: job.CreationTimestamp.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second)}
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			e.outcome = string(c.Type)
		}
	}
	return e
}

// finished is a Job with ttlSecondsAfterFinished that has finished. The UID is
// empty if this process has not seen the Job.
type finished struct {
	uid     types.UID
	outcome string
}

// observeJob notes what a watch shows of a Job. A Job that was deleted while the
// watch was interrupted counts as finished if its TTL may have deleted it.
func (x *Index) observeJob(s *apply.State, e *expiry, missed bool) {
	if e == nil || !s.Managed || s.Owner == "" {
		return
	}
	outcome := e.outcome
	if outcome == "" && missed && !time.Now().Before(e.earliest) {
		outcome = Complete
	}
	if outcome == "" {
		return
	}
	if x.setOutcome(s, outcome) {
		x.onChange(s.Owner)
	}
}

// setOutcome sets how a Job finished. It reports whether that was not known before,
// and the Job counts for the owner in its label.
func (x *Index) setOutcome(job *apply.State, outcome string) (isNew bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	of := x.owner(job.Owner)
	if of.finished == nil {
		of.finished = map[apply.Key]finished{}
	}
	before := of.finished[job.Key]
	of.finished[job.Key] = finished{uid: job.UID, outcome: outcome}
	return before.uid != job.UID && x.concernsOwner(job)
}

// SetJobOutcome notes that a Job with ttlSecondsAfterFinished that is gone has finished.
func (x *Index) SetJobOutcome(owner types.UID, key apply.Key, outcome string) {
	x.setOutcome(&apply.State{Key: key, Owner: owner}, outcome)
}

// JobOutcome returns how a Job with that UID has finished, and an empty text if it
// has not, or has no ttlSecondsAfterFinished.
func (x *Index) JobOutcome(owner types.UID, key apply.Key, uid types.UID) string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if job := x.known(owner).finished[key]; job.uid == uid {
		return job.outcome
	}
	return ""
}

// JobOutcomes returns the expected Jobs of an owner that have finished and have
// ttlSecondsAfterFinished, and how.
func (x *Index) JobOutcomes(owner types.UID) map[apply.Key]string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	jobs := x.known(owner).finished
	if len(jobs) == 0 {
		return nil
	}
	outcomes := map[apply.Key]string{}
	for key, job := range jobs {
		if x.expectedBy(owner, key) != nil {
			outcomes[key] = job.outcome
		}
	}
	return outcomes
}

// Expected returns what an owner's objects are expected to be like, and false if
// nothing is known.
func (x *Index) Expected(owner types.UID) ([]apply.State, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	of := x.known(owner)
	var states []apply.State
	for _, key := range of.expected {
		if expected := x.expectedBy(owner, key); expected != nil {
			states = append(states, *expected)
		}
	}
	return states, of.known
}

// hasFinished reports whether an owner's object is a finished Job that Kubernetes
// has deleted, or will delete, by its ttlSecondsAfterFinished.
func (x *Index) hasFinished(owner types.UID, key apply.Key, live *apply.State) bool {
	job, ok := x.known(owner).finished[key]
	return ok && (live == nil || live.UID == job.uid)
}

// jobHealth returns the health of an object; for a finished Job that is gone, how
// the Job finished.
func (x *Index) jobHealth(owner types.UID, key apply.Key, health Health) Health {
	if x.live(key) != nil || !x.hasFinished(owner, key, nil) {
		return health
	}
	if x.owners[owner].finished[key].outcome == Failed {
		return Health{Failed: true, Reason: "JobFailed", Message: "the Job failed, and Kubernetes has deleted it after its ttlSecondsAfterFinished"}
	}
	return healthy
}
