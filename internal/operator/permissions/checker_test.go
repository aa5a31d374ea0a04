package permissions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright"
	"github.com/chartwright/chartwright/internal/catalog"
)

// account is a fake API server with the rules of the operator.
type account struct {
	mu sync.Mutex
	// rules are by namespace.
	rules   map[string][]rbacv1.PolicyRule
	err     error
	reviews int
}

func (a *account) review(_ context.Context, namespace string) ([]rbacv1.PolicyRule, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reviews++
	return a.rules[namespace], a.err
}

func (a *account) set(err error, namespace string, rules ...rbacv1.PolicyRule) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
	a.rules = map[string][]rbacv1.PolicyRule{namespace: rules}
}

// takeReviews returns the number of reviews since the last call.
func (a *account) takeReviews() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.reviews
	a.reviews = 0
	return n
}

// podSet returns the embedded kind of that name.
func podSet(t *testing.T) catalog.Kind {
	t.Helper()
	kinds, err := catalog.FromFS(chartwright.Files, chartwright.WatchesFile)
	if err != nil {
		t.Fatal(err)
	}
	return kinds[slices.IndexFunc(kinds, func(k catalog.Kind) bool { return k.Kind == "PodSet" })]
}

// startChecker starts a Checker in a synctest bubble, and records its reports.
func startChecker(t *testing.T, a *account, namespaces ...string) (r *Checker, reports *[]string) {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	reports = &[]string{}
	r = NewChecker(Config{
		Operator: "x", Kinds: []catalog.Kind{podSet(t)}, Namespaces: namespaces, Mapper: mapper, Review: a.review, Logger: logr.Discard(),
		OnChange: func(kind schema.GroupKind, missing []Rule, unknown string) {
			*reports = append(*reports, fmt.Sprintf("%s lacks [%s] %s", kind.Kind, Text(missing), unknown))
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Start(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	return r, reports
}

// startDerived starts a Checker whose rules are derived.
func startDerived(t *testing.T, a *account, namespaces ...string) (r *Checker, reports *[]string) {
	t.Helper()
	r, reports = startChecker(t, a, namespaces...)
	r.kinds[0].Derive()
	synctest.Wait()
	return r, reports
}

// TestChecker_DerivesAfterARefusal: the chart is rendered only after a request was forbidden.
// The report is then complete, without another request.
func TestChecker_DerivesAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		a.set(nil, allNamespaces, all)
		r, reports := startChecker(t, a)
		podSets := r.Kind(podSet(t).GVK().GroupKind())
		own := rule("", "events", "list", "create", "patch")
		allowed := but(r, rule("", "nothing"))
		a.set(nil, allNamespaces, allowed...)
		r.Check()
		pass(time.Hour)
		if podSets.queued || len(*reports) > 0 || !covers(podSets.required, own) {
			t.Fatalf("without a refusal: derivation %v, reports %q, rules %s", podSets.queued, *reports, Text(podSets.required))
		}
		if rules, known := podSets.Missing("shop"); rules != "" || known {
			t.Errorf("before the derivation, missing: %q, known: %v", rules, known)
		}
		a.takeReviews()
		refused := forbidden(`User "o" cannot get resource "deployments" in API group "apps" in the namespace "shop"`)
		const first = `Add to the rules of the operator's role: {apiGroups: ["apps"], resources: ["deployments"], verbs: ["get"]}`
		for range 3 {
			if advice := podSets.Refused(refused, ""); advice != first {
				t.Errorf("the first advice is %q", advice)
			}
		}
		synctest.Wait()
		const missing = `{apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list", "watch", "create", "patch", "delete"]}`
		if rules, known := podSets.Missing("shop"); rules != missing || !known {
			t.Errorf("missing: %q, known: %v", rules, known)
		}
		if advice := podSets.Refused(refused, ""); advice != "Add to the rules of the operator's role: "+missing {
			t.Errorf("the second advice is %q", advice)
		}
		if len(*reports) != 1 || !strings.Contains((*reports)[0], missing) {
			t.Errorf("reports: %q", *reports)
		}
		if n := a.takeReviews(); n != 1 {
			t.Errorf("%d reviews at once, want the requested one", n)
		}
		if len(podSets.all.queue) > 0 {
			t.Error("another derivation is queued")
		}
	})
}

// pass advances the clock of the bubble and waits until its effects are complete.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

var all = rule("*", "*", "*")

// but returns rules that allow everything except some verbs of a resource.
func but(r *Checker, lacks rbacv1.PolicyRule) (rules []rbacv1.PolicyRule) {
	for i := range r.kinds[0].required {
		n := r.kinds[0].required[i].PolicyRule
		if n.Resources[0] == lacks.Resources[0] && n.APIGroups[0] == lacks.APIGroups[0] {
			n.Verbs = slices.DeleteFunc(slices.Clone(n.Verbs), func(v string) bool { return slices.Contains(lacks.Verbs, v) })
		}
		rules = append(rules, n)
	}
	return rules
}

func TestChecker_RepeatsWhileRulesAreMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		a.set(nil, allNamespaces, all)
		r, reports := startDerived(t, a)
		if n := a.takeReviews(); n != 1 || len(*reports) > 0 {
			t.Errorf("%d reviews at start, reports %v", n, *reports)
		}
		pass(time.Hour)
		if n := a.takeReviews(); n > 0 {
			t.Errorf("%d reviews without missing rules", n)
		}
		if rules, known := r.Kind(podSet(t).GVK().GroupKind()).Missing("shop"); rules != "" || !known {
			t.Errorf("missing: %q, known: %v", rules, known)
		}

		a.set(nil, allNamespaces, but(r, rule("apps", "deployments", "create", "delete"))...)
		r.Check()
		pass(time.Minute - time.Second)
		// Immediately, and every ten seconds.
		if n := a.takeReviews(); n != 6 {
			t.Errorf("%d reviews in a minute", n)
		}
		const missing = `{apiGroups: ["apps"], resources: ["deployments"], verbs: ["create", "delete"]}`
		if rules, _ := r.Kind(podSet(t).GVK().GroupKind()).Missing("shop"); rules != missing {
			t.Errorf("missing: %q", rules)
		}
		a.set(nil, allNamespaces, all)
		pass(time.Hour)
		if n := a.takeReviews(); n != 1 {
			t.Errorf("%d reviews until no rules are missing", n)
		}
		if want := []string{"PodSet lacks [" + missing + "] ", "PodSet lacks [] "}; !slices.Equal(*reports, want) {
			t.Errorf("reports: %q, want %q", *reports, want)
		}
	})
}

// TestChecker_MergesRequestedChecks: any number of forbidden requests cause at most one check
// in ten seconds.
func TestChecker_MergesRequestedChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		a.set(nil, allNamespaces, all)
		r, _ := startDerived(t, a)
		a.takeReviews()
		for range 595 {
			r.Check()
			pass(100 * time.Millisecond)
		}
		if n := a.takeReviews(); n != 5 {
			t.Errorf("%d reviews in just under a minute", n)
		}
	})
}

// TestChecker_RulesForSomeValues: such rules are reported, but not by Missing.
func TestChecker_RulesForSomeValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		a.set(nil, allNamespaces, all)
		r, reports := startDerived(t, a)
		a.set(nil, allNamespaces, but(r, rule("", "events", "list"))...)
		r.Check()
		pass(checkInterval)
		if rules, known := r.kinds[0].Missing("shop"); rules != "" || !known {
			t.Errorf("missing: %q", rules)
		}
		if len(*reports) != 1 || !strings.Contains((*reports)[0], `resources: ["events"], verbs: ["list"]`) {
			t.Errorf("reports: %q", *reports)
		}
	})
}

func TestChecker_RulesOfNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		a.set(nil, "one", all)
		r, _ := startDerived(t, a, "one", "two")
		if n := a.takeReviews(); n != 2 {
			t.Errorf("%d reviews", n)
		}
		if rules, _ := r.kinds[0].Missing("one"); rules != "" {
			t.Errorf("missing in one: %q", rules)
		}
		if rules, _ := r.kinds[0].Missing("two"); !strings.Contains(rules, "deployments") {
			t.Errorf("missing in two: %q", rules)
		}
	})
}

// TestChecker_RemovedKindIsNotCheckedAgain: a role without the rules of a removed kind causes
// no requests.
func TestChecker_RemovedKindIsNotCheckedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		a.set(nil, allNamespaces, rule("", "nothing"))
		r, reports := startChecker(t, a)
		pass(time.Minute)
		if n := a.takeReviews(); n < 5 {
			t.Fatalf("%d reviews in a minute for a kind that is served", n)
		}
		r.AddRemoved(podSet(t))
		pass(checkInterval)
		a.takeReviews()
		pass(time.Hour)
		if n := a.takeReviews(); n > 0 {
			t.Errorf("%d reviews for a removed kind", n)
		}
		// A forbidden watch requests a check, whose result retries the watch.
		changed := r.Changed()
		a.set(nil, allNamespaces, all)
		r.Check()
		synctest.Wait()
		if len(*reports) == 0 || (*reports)[len(*reports)-1] != "PodSet lacks [] " {
			t.Errorf("reports: %q", *reports)
		}
		select {
		case <-changed:
		default:
			t.Error("the change is not reported")
		}
	})
}

func TestChecker_IncompleteRulesReview(t *testing.T) {
	for name, test := range map[string]struct {
		err error
		// reviews are made in the first minute.
		reviews int
		unknown string
	}{
		"a webhook decides":        {fmt.Errorf("%w: webhook", errIncomplete), 1, "the API server cannot list all rules: webhook"},
		"the review is forbidden":  {apierrors.NewForbidden(schema.GroupResource{Resource: "selfsubjectrulesreviews"}, "", errors.New("no")), 1, "selfsubjectrulesreviews is forbidden: no"},
		"the API server is not up": {errors.New("no route"), 6, "no route"},
		"nothing is wrong":         {nil, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &account{}
				a.set(test.err, allNamespaces, all)
				r, reports := startDerived(t, a)
				pass(time.Minute - time.Second)
				if n := a.takeReviews(); n != test.reviews {
					t.Errorf("%d reviews in a minute, want %d", n, test.reviews)
				}
				if rules, known := r.kinds[0].Missing("shop"); rules != "" || !known {
					t.Errorf("missing: %q, known: %v", rules, known)
				}
				if want := "PodSet lacks [] " + test.unknown; test.unknown != "" && !slices.Equal(*reports, []string{want}) {
					t.Errorf("reports: %q, want %q", *reports, want)
				}
			})
		})
	}
}

func TestKindChecker_RefusedAdvice(t *testing.T) {
	const own, deployer = "system:serviceaccount:system:operator", "system:serviceaccount:shop:deployer"
	refused := func(user, verb, resource, group string) string {
		return fmt.Sprintf("User %q cannot %s resource %q in API group %q in the namespace \"shop\"", user, verb, resource, group)
	}
	const deployments = `{apiGroups: ["apps"], resources: ["deployments"], verbs: ["create", "delete"]}`
	for _, test := range []struct {
		name, text string
		want       string
		looks      int
	}{
		{
			"one of several verbs", refused(own, "create", "deployments", "apps"),
			"Add to the rules of the operator's role: " + deployments, 1,
		},
		{
			"a rule that was not derived", refused(own, "get", "widgets", "x.example.com"),
			`Add to the rules of the operator's role: {apiGroups: ["x.example.com"], resources: ["widgets"], verbs: ["get"]}`, 6,
		},
		{
			"in another's name", refused(deployer, "create", "deployments", "apps"),
			"Add to the rules of " + deployer + `: {apiGroups: ["apps"], resources: ["deployments"], verbs: ["create"]}`, 0,
		},
		{"a quota", "exceeded quota", "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &account{}
				a.set(nil, allNamespaces, all)
				r, _ := startDerived(t, a)
				pass(time.Minute)
				a.takeReviews()
				// Two verbs were missing at the last check, and none now.
				have := but(r, rule("apps", "deployments", "create", "delete"))
				r.mu.Lock()
				r.have[allNamespaces] = have
				r.mu.Unlock()
				a.set(nil, allNamespaces, have...)
				if test.looks < 2 {
					a.set(nil, allNamespaces, all)
				}
				if got := r.kinds[0].Refused(fmt.Errorf("install: %w", forbidden(test.text)), deployer); got != test.want {
					t.Errorf("the advice is\n%s\nwant\n%s", got, test.want)
				}
				pass(time.Minute - time.Second)
				if n := a.takeReviews(); n != test.looks {
					t.Errorf("asked %d times afterwards, want %d", n, test.looks)
				}
			})
		})
	}
}
