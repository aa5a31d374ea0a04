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

// account is what the API server knows of the operator's rights.
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

// asked returns how often the account was reviewed since the last call.
func (a *account) asked() int {
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

// looking starts rights in a bubble, with what they told.
func looking(t *testing.T, a *account, namespaces ...string) (r *Checker, told *[]string) {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	told = &[]string{}
	r = NewChecker(Config{
		Operator: "x", Kinds: []catalog.Kind{podSet(t)}, Namespaces: namespaces, Mapper: mapper, Review: a.review, Logger: logr.Discard(),
		OnChange: func(kind schema.GroupKind, missing []Rule, unknown string) {
			*told = append(*told, fmt.Sprintf("%s lacks [%s] %s", kind.Kind, Text(missing), unknown))
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
	return r, told
}

// pass lets time pass in a bubble, where it is no time at all, until everything
// that it calls for is done.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

var all = rule("*", "*", "*")

// but is what allows everything but a resource's verbs.
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

func TestRightsAreAskedForWhileSomeAreMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		a.set(nil, allNamespaces, all)
		r, told := looking(t, a)
		if n := a.asked(); n != 1 || len(*told) > 0 {
			t.Errorf("asked %d times at start, and told %v", n, *told)
		}
		pass(time.Hour)
		if n := a.asked(); n > 0 {
			t.Errorf("asked %d times though nothing is missing", n)
		}
		if rules, known := r.Kind(podSet(t).GVK().GroupKind()).Missing("shop"); rules != "" || !known {
			t.Errorf("missing are %q, known: %v", rules, known)
		}

		a.set(nil, allNamespaces, but(r, rule("apps", "deployments", "create", "delete"))...)
		r.Check()
		pass(time.Minute - time.Second)
		// At once, and every ten seconds.
		if n := a.asked(); n != 6 {
			t.Errorf("asked %d times in a minute", n)
		}
		const missing = `{apiGroups: ["apps"], resources: ["deployments"], verbs: ["create", "delete"]}`
		if rules, _ := r.Kind(podSet(t).GVK().GroupKind()).Missing("shop"); rules != missing {
			t.Errorf("missing are %q", rules)
		}
		a.set(nil, allNamespaces, all)
		pass(time.Hour)
		if n := a.asked(); n != 1 {
			t.Errorf("asked %d times until nothing is missing", n)
		}
		if want := []string{"PodSet lacks [" + missing + "] ", "PodSet lacks [] "}; !slices.Equal(*told, want) {
			t.Errorf("told is %q, want %q", *told, want)
		}
	})
}

// TestRightsThatManyAskFor: however often something is forbidden, it is one look
// in ten seconds.
func TestRightsThatManyAskFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		a.set(nil, allNamespaces, all)
		r, _ := looking(t, a)
		a.asked()
		for range 595 {
			r.Check()
			pass(100 * time.Millisecond)
		}
		if n := a.asked(); n != 5 {
			t.Errorf("asked %d times in just under a minute", n)
		}
	})
}

// TestRightsThatOnlySomeValuesNeed are told, and by no condition.
func TestRightsThatOnlySomeValuesNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		a.set(nil, allNamespaces, all)
		r, told := looking(t, a)
		a.set(nil, allNamespaces, but(r, rule("", "events", "list"))...)
		r.Check()
		pass(checkInterval)
		if rules, known := r.kinds[0].Missing("shop"); rules != "" || !known {
			t.Errorf("missing are %q", rules)
		}
		if len(*told) != 1 || !strings.Contains((*told)[0], `resources: ["events"], verbs: ["list"]`) {
			t.Errorf("told is %q", *told)
		}
	})
}

func TestRightsOfNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		a.set(nil, "one", all)
		r, _ := looking(t, a, "one", "two")
		if n := a.asked(); n != 2 {
			t.Errorf("asked %d times", n)
		}
		if rules, _ := r.kinds[0].Missing("one"); rules != "" {
			t.Errorf("missing in one are %q", rules)
		}
		if rules, _ := r.kinds[0].Missing("two"); !strings.Contains(rules, "deployments") {
			t.Errorf("missing in two are %q", rules)
		}
	})
}

func TestRightsThatCannotBeListed(t *testing.T) {
	for name, test := range map[string]struct {
		err error
		// reviews are made in the first minute.
		reviews int
		unknown string
	}{
		"a webhook decides":        {fmt.Errorf("%w: webhook", errIncomplete), 1, "the API server cannot list them all: webhook"},
		"the review is forbidden":  {apierrors.NewForbidden(schema.GroupResource{Resource: "selfsubjectrulesreviews"}, "", errors.New("no")), 1, "selfsubjectrulesreviews is forbidden: no"},
		"the API server is not up": {errors.New("no route"), 6, "no route"},
		"nothing is wrong":         {nil, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &account{}
				a.set(test.err, allNamespaces, all)
				r, told := looking(t, a)
				pass(time.Minute - time.Second)
				if n := a.asked(); n != test.reviews {
					t.Errorf("asked %d times in a minute, want %d", n, test.reviews)
				}
				if rules, known := r.kinds[0].Missing("shop"); rules != "" || !known {
					t.Errorf("missing are %q, known: %v", rules, known)
				}
				if want := "PodSet lacks [] " + test.unknown; test.unknown != "" && !slices.Equal(*told, []string{want}) {
					t.Errorf("told is %q, want %q", *told, want)
				}
			})
		})
	}
}

func TestAdvice(t *testing.T) {
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
			"what nobody has derived", refused(own, "get", "widgets", "x.example.com"),
			`Add to the rules of the operator's role: {apiGroups: ["x.example.com"], resources: ["widgets"], verbs: ["get"]}`, 6,
		},
		{
			"in another's name", refused(deployer, "create", "deployments", "apps"),
			"Give " + deployer + ` the rules: {apiGroups: ["apps"], resources: ["deployments"], verbs: ["create"]}`, 0,
		},
		{"a quota", "exceeded quota", "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &account{}
				a.set(nil, allNamespaces, all)
				r, _ := looking(t, a)
				pass(time.Minute)
				a.asked()
				// What was read last lacks two verbs; and now nothing any more.
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
				if n := a.asked(); n != test.looks {
					t.Errorf("asked %d times afterwards, want %d", n, test.looks)
				}
			})
		})
	}
}
