package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// asking parses annotations, given as keys without our prefix, and values.
func asking(pairs ...string) func(*snapshot) {
	return func(v *snapshot) {
		from := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			from[api.Domain+"/"+pairs[i]] = pairs[i+1]
		}
		v.Requests = annotations.Parse(from)
	}
}

// marked sets marks on the newest revision, which this operator wrote.
func marked(m release.Marks) func(*snapshot) {
	return func(v *snapshot) { v.Marks, v.History[0].Marks = m, m }
}

// written replaces every record by one that this operator wrote.
func written(v *snapshot) {
	for i, record := range v.History {
		read, _ := release.FromMeta(secretOf(record))
		v.History[i] = read
	}
}

func withSpec(spec any) func(*snapshot) { return func(v *snapshot) { v.CR.Object["spec"] = spec } }

const (
	dep, sup, fai = api.StatusDeployed, api.StatusSuperseded, api.StatusFailed
)

func TestAvailable(t *testing.T) {
	heldAt := func(revision int) func(*snapshot) {
		return marked(release.Marks{Held: &release.Held{Revision: revision}})
	}
	neverReady := func(v *snapshot) { v.History[1].NeverReady, v.History[2].NeverReady = true, true }
	for _, test := range []struct {
		name  string
		v     *snapshot
		asked string
		want  int
	}{
		{"a revision that was deployed", viewOf([]string{dep, sup, sup}), "1", 1},
		{"the deployed revision", viewOf([]string{dep, sup}), "2", 2},
		{"a failed revision", viewOf([]string{dep, fai, sup}), "2", 0},
		{"a revision that is not stored", viewOf([]string{dep, sup}), "7", 0},
		{"a revision without a release", viewOf(nil), "1", 0},
		{"previous", viewOf([]string{dep, sup, sup}), "previous", 2},
		{"previous, after failed revisions", viewOf([]string{dep, fai, fai, sup}), "previous", 1},
		{"previous of a failed revision, which is deployed", viewOf([]string{fai, dep, sup}), "previous", 2},
		{"previous of the first revision", viewOf([]string{dep}), "previous", 0},
		{"previous, which failed", viewOf([]string{dep, fai}), "previous", 0},
		{"previous without a release", viewOf(nil), "previous", 0},
		// Revision 4 is a rollback to revision 2.
		{"previous of the held revision", viewOf([]string{dep, sup, sup, sup}, heldAt(2), written), "previous", 1},
		{"previous of the first revision, which is held", viewOf([]string{dep, sup, sup, sup}, heldAt(1), written), "previous", 0},
		{"a revision after the held revision", viewOf([]string{dep, sup, sup, sup}, heldAt(2)), "3", 3},
		{"none", viewOf([]string{dep, sup}), "none", 0},
		{"the oldest revision to keep", viewOf([]string{dep, sup, sup, sup}), "2", 2},
		{"a revision before that, restored from a copy", viewOf([]string{dep, sup, sup, sup}), "1", 0},
		{"previous, restored from a copy", viewOf([]string{dep, sup, sup, sup}, neverReady), "previous", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			asking("rollback-to", test.asked)(test.v)
			test.v.Excess = release.Excess(test.v.History, 3)
			if got := test.v.available(*test.v.Requests.Rollback); got != test.want {
				t.Errorf("revision %d, want %d", got, test.want)
			}
		})
	}
}

func TestLastGood(t *testing.T) {
	for _, test := range []struct {
		name     string
		statuses []string
		want     int
	}{
		{"no release", nil, 0},
		{"the first install", []string{fai}, 0},
		{"previous revision of a failed upgrade", []string{fai, dep, sup}, 2},
		{"after earlier failures", []string{fai, fai, sup}, 1},
		{"nothing was ever deployed", []string{fai, fai}, 0},
		{"the deployed revision itself", []string{dep}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := (&Reconciler{}).lastGood(viewOf(test.statuses)); got != test.want {
				t.Errorf("revision %d, want %d", got, test.want)
			}
		})
	}
}

func TestUntidy(t *testing.T) {
	for _, test := range []struct {
		name     string
		statuses []string
		want     bool
	}{
		{"no release", nil, false},
		{"one is deployed", []string{dep, sup, sup}, false},
		{"one deployed, the newest failed", []string{fai, dep, sup}, false},
		{"none is deployed", []string{fai, sup, sup}, false},
		{"two are deployed", []string{dep, dep}, true},
		{"two deployed, a failed revision between them", []string{dep, fai, dep}, true},
		{"two deployed, the newest failed", []string{fai, dep, sup, dep}, true},
		{"the newest is pending", []string{api.StatusPendingUpgrade, dep}, false},
		{"the newest is being uninstalled", []string{api.StatusUninstalling, sup}, false},
		{"none is deployed since an interrupted uninstall", []string{fai, api.StatusUninstalling}, false},
		{"one is deployed since an interrupted uninstall", []string{fai, dep, api.StatusUninstalling}, true},
		{"an earlier one is pending", []string{dep, api.StatusPendingUpgrade, sup}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := viewOf(test.statuses, written)
			if got := untidy(v.History); got != test.want {
				t.Errorf("untidy: %v, want %v", got, test.want)
			}
			(&Reconciler{}).observeRequests(v)
			if got := v.Observation.Inconsistent; got != test.want {
				t.Errorf("observed as inconsistent: %v, want %v", got, test.want)
			}
		})
	}
}

// TestObserveFailures_ReachedTargetForgetsFailure: a failure is obsolete if
// the release has reached its target, for example because only the response was lost.
func TestObserveFailures_ReachedTargetForgetsFailure(t *testing.T) {
	held := func(v *snapshot) {
		v.Observation.Newest.Digest = "older"
		marked(release.Marks{Rollback: status.Token("1"), Held: &release.Held{Revision: 1, From: 2, Spec: specOf(&Reconciler{}, v)}})(v)
	}
	for _, test := range []struct {
		name string
		v    *snapshot
		// target is that of the failure.
		target    plan.TargetKey
		forgotten bool
	}{
		{"desired revision deployed", viewOf([]string{dep, sup}), ofSpec, true},
		{"desired revision deployed, failure with another target", viewOf([]string{dep, sup}), plan.TargetKey{Digest: "older"}, false},
		{"desired revision failed", viewOf([]string{fai, dep}), ofSpec, false},
		{"two revisions deployed", viewOf([]string{dep, dep}), ofSpec, false},
		{"desired revision deployed, rollback requested", viewOf([]string{dep, sup}, asking("rollback-to", "1")), plan.TargetKey{Goal: plan.GoalRevision, Revision: 1, Request: status.Token("1")}, false},
		{"desired revision deployed, retry requested", viewOf([]string{dep, sup}, asking("reconcile-requested-at", "now")), plan.TargetKey{Goal: plan.GoalSpec, Digest: wanted, RetryToken: status.Token("now")}, true},
		{"desired revision deployed, never ready", viewOf([]string{dep, sup}, func(v *snapshot) { v.Observation.Overdue = true }), ofSpec, false},
		{"desired revision deployed, being deleted", viewOf([]string{dep, sup}, beingDeleted), plan.TargetKey{Goal: plan.GoalGone}, false},
		{"held revision deployed", viewOf([]string{dep, sup}, held), plan.TargetKey{Goal: plan.GoalRevision, Revision: 1, Request: status.Token("1")}, true},
		{"held revision deployed, upgrade failed before", viewOf([]string{dep, sup}, held), ofSpec, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &Reconciler{}
			written(test.v)
			r.memory.put("", false, status.Failure{Failure: plan.Failure{Target: test.target}})
			r.observeRequests(test.v)
			r.observeFailures(test.v)
			if forgotten := test.v.Failure == nil; forgotten != test.v.reached || forgotten != test.forgotten {
				t.Errorf("forgotten: %v, want %v", forgotten, test.forgotten)
			}
		})
	}
}

// scaled returns a Reconciler of a kind with a scale subresource.
func scaled(path string) *Reconciler {
	scale := &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: path}
	return &Reconciler{Kind: catalog.Kind{Watch: watches.Watch{Subresources: watches.Subresources{Scale: scale}}}}
}

func TestSpecDigest(t *testing.T) {
	digest := func(r *Reconciler, spec any) string { return specOf(r, viewOf(nil, withSpec(spec))) }
	plain, top, deep := &Reconciler{}, scaled(".spec.replicas"), scaled(".spec.web.replicas")
	type spec = map[string]any
	for _, test := range []struct {
		name     string
		r        *Reconciler
		one, two any
		equal    bool
	}{
		{"the same", plain, spec{"a": int64(1)}, spec{"a": int64(1)}, true},
		{"an edit", plain, spec{"a": int64(1)}, spec{"a": int64(2)}, false},
		{"nothing, in two ways", plain, nil, spec{}, true},
		{"replicas of a kind without scale", plain, spec{"replicas": int64(1)}, spec{"replicas": int64(2)}, false},
		{"replicas", top, spec{"replicas": int64(1), "a": "b"}, spec{"replicas": int64(2), "a": "b"}, true},
		{"added replicas", top, spec{"a": "b"}, spec{"replicas": int64(2), "a": "b"}, true},
		{"an edit and replicas", top, spec{"replicas": int64(1), "a": "b"}, spec{"replicas": int64(1), "a": "c"}, false},
		{"replicas in another field", deep, spec{"replicas": int64(1)}, spec{"replicas": int64(2)}, false},
		{"nested replicas", deep, spec{"web": spec{"replicas": int64(1), "a": "b"}}, spec{"web": spec{"replicas": int64(2), "a": "b"}}, true},
		{"added nested replicas", deep, spec{"a": "b"}, spec{"a": "b", "web": spec{"replicas": int64(2)}}, true},
		{"an edit and nested replicas", deep, spec{"web": spec{"replicas": int64(1), "a": "b"}}, spec{"web": spec{"replicas": int64(1), "a": "c"}}, false},
		{"a parent that is not a map", deep, spec{"web": "x"}, spec{"web": "y"}, false},
		{"a spec that is not an object", plain, "x", "x", true},
		{"another spec that is not an object", plain, "x", "y", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			one, two := digest(test.r, test.one), digest(test.r, test.two)
			if (one == two) != test.equal || len(one) != status.TokenLength {
				t.Errorf("%s and %s, equal: %v, want %v", one, two, one == two, test.equal)
			}
		})
	}
	v := viewOf(nil, withSpec(map[string]any{"web": map[string]any{"replicas": int64(1)}}))
	before := v.CR.DeepCopy()
	specOf(deep, v)
	if diff := cmp.Diff(before.Object, v.CR.Object); diff != "" {
		t.Errorf("the custom resource has changed (-before +after):\n%s", diff)
	}
}

func TestObserveRequests(t *testing.T) {
	r := &Reconciler{}
	followed := specOf(r, viewOf(nil))
	held := func(spec string) release.Marks {
		return release.Marks{Rollback: status.Token("1"), Held: &release.Held{Revision: 1, From: 2, Spec: spec}}
	}
	observed := func(v *snapshot) plan.Observation {
		written(v)
		v.Marks, v.Observation = release.Marks{}, plan.Observation{Adoptable: v.Observation.Adoptable}
		r.observeRequests(v)
		return v.Observation
	}
	upgraded := []string{dep, sup}
	adoptable := func(v *snapshot) { v.Observation.Adoptable = true }
	for _, test := range []struct {
		name string
		v    *snapshot
		want plan.Observation
	}{
		{"nothing", viewOf(upgraded), plan.Observation{}},
		{"a pause", viewOf(upgraded, asking("pause", "true")), plan.Observation{Paused: true}},
		{"a pause including deletion", viewOf(upgraded, asking("pause", "including-deletion")), plan.Observation{Paused: true, PausedDeletion: true}},
		{"an orphan request", viewOf(upgraded, asking("deletion-policy", "orphan")), plan.Observation{Orphan: true, RetryToken: status.Token("deletion-policy")}},
		{"a deletion with data", viewOf(upgraded, asking("deletion-policy", "delete-data")), plan.Observation{RetryToken: status.Token("delete-data")}},
		{"a rollback", viewOf(upgraded, asking("rollback-to", "1")), plan.Observation{Request: &plan.Request{Token: status.Token("1"), Revision: 1}}},
		{"a rollback to an unavailable revision", viewOf(upgraded, asking("rollback-to", "7")), plan.Observation{Request: &plan.Request{Token: status.Token("7")}}},
		{"a rollback that was answered", viewOf(upgraded, asking("rollback-to", "1"), marked(release.Marks{Rollback: status.Token("1")})), plan.Observation{}},
		{"a repeated rollback request", viewOf(upgraded, asking("rollback-to", "1@x"), marked(release.Marks{Rollback: status.Token("1")})), plan.Observation{Request: &plan.Request{Token: status.Token("1@x"), Revision: 1}}},
		{"a malformed rollback request", viewOf(upgraded, asking("rollback-to", "latest")), plan.Observation{}},
		{"the end of a hold", viewOf(upgraded, asking("rollback-to", "none"), marked(held(followed))), plan.Observation{
			Request: &plan.Request{Token: status.Token("none"), Resume: true}, Held: &plan.Held{Revision: 1, Token: status.Token("1")},
		}},
		{"a hold without its annotation", viewOf(upgraded, marked(held(followed))), plan.Observation{Held: &plan.Held{Revision: 1, Token: status.Token("1")}}},
		{"a hold and an edited spec", viewOf(upgraded, marked(held("another"))), plan.Observation{Held: &plan.Held{Revision: 1, Token: status.Token("1"), Expired: true}}},
		{"a hold after failures", viewOf(upgraded, marked(release.Marks{Held: &release.Held{Revision: 1, Spec: followed, ByFailure: true}})), plan.Observation{Held: &plan.Held{Revision: 1, ByFailure: true}}},
		{"a verification", viewOf(upgraded, asking("reconcile-requested-at", "now")), plan.Observation{VerifyRequested: true, RetryToken: status.Token("now")}},
		{"a verification that was answered", viewOf(upgraded, asking("reconcile-requested-at", "now"), marked(release.Marks{Reconcile: status.Token("now")})), plan.Observation{RetryToken: status.Token("now")}},
		{"force", viewOf(upgraded, asking("force", "now")), plan.Observation{VerifyRequested: true, RetryToken: status.Token("now")}},
		{"force that was used", viewOf(upgraded, asking("force", "now"), marked(release.Marks{Force: status.Token("now")})), plan.Observation{RetryToken: status.Token("now")}},
		{"another way to uninstall", viewOf(upgraded, asking("uninstall-disable-hooks", "true")), plan.Observation{RetryToken: status.Token("uninstall-disable-hooks")}},
		{"the usual way to uninstall", viewOf(upgraded, asking("uninstall-disable-hooks", "false")), plan.Observation{}},
		{"tests", viewOf(upgraded, asking("test", "now")), plan.Observation{TestRequested: true}},
		{"tests that were run", viewOf(upgraded, asking("test", "now"), marked(release.Marks{Test: status.Token("now")})), plan.Observation{}},
		{"marks of an adoptable release", viewOf(upgraded, adoptable, marked(held(followed))), plan.Observation{Adoptable: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.want.LastGood = 1
			if diff := cmp.Diff(test.want, observed(test.v)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
