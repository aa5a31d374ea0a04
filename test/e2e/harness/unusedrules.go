package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// grantedRules records the permissions of a run's operators, so that Main can
// compare them with their requests.
type grantedRules struct {
	mu sync.Mutex
	// granted and missing are by user.
	granted, missing map[string][]rbacv1.PolicyRule
	// auditFrom is the size of the audit log when the run began.
	auditFrom int64
}

func (r *grantedRules) record(user string, granted, missing []rbacv1.PolicyRule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.granted == nil {
		r.granted, r.missing = map[string][]rbacv1.PolicyRule{}, map[string][]rbacv1.PolicyRule{}
	}
	r.granted[user] = append(r.granted[user], granted...)
	r.missing[user] = append(r.missing[user], missing...)
}

// Unused is a permission, as "patch deployments.apps", that some operator has
// and that no test uses, with its purpose.
type Unused struct{ Permission, Purpose string }

// check reads the audit log of the run. It returns an error if an operator was
// denied a request that no test expected to be denied, or if the unused
// permissions differ from those expected. It skips the second check if only
// some of the tests ran, or if no unused permissions are expected.
func (r *grantedRules) check(ctx context.Context, unused []Unused) error {
	if _, err := syncAudit(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var denied []string
	used, probed := map[string]bool{}, map[string]bool{}
	err := readAudit(r.auditFrom, ":"+SystemNamespace+":", func(request Request, _ int64) {
		user := request.User.Username
		if _, known := r.granted[user]; !known {
			return
		}
		if request.ImpersonatedUser.Username != "" {
			// The permissions of the impersonated account are not checked here.
			used[ruleName("impersonate", "", "serviceaccounts")] = true
			return
		}
		rules := request.rules()
		if request.denied() {
			if !request.probe() && len(permissions.Allowed(r.missing[user], rules[0])) > 0 {
				denied = append(denied, user+": "+request.RequestURI+": "+request.ResponseStatus.Message)
			}
			return
		}
		uses := used
		if request.probe() {
			uses = probed
		}
		for _, rule := range rules {
			uses[ruleName(rule.Verbs[0], rule.APIGroups[0], rule.Resources[0])] = true
		}
	})
	if err != nil {
		return err
	}
	var errs []error
	if len(denied) > 0 {
		errs = append(errs, fmt.Errorf("the API server denied operators required requests:\n  %s", strings.Join(slices.Compact(slices.Sorted(slices.Values(denied))), "\n  ")))
	}
	if !wholeSuite() || len(unused) == 0 {
		return errors.Join(errs...)
	}
	return errors.Join(append(errs, r.compare(used, probed, unused))...)
}

// compare returns an error for each permission that is unused but not expected
// to be, and for each that is expected to be unused but is used. Permissions that
// only a probe used count as neither: a probe uses any list permission that the
// operator has, and only some runs of the suite cause one.
func (r *grantedRules) compare(used, probed map[string]bool, expected []Unused) error {
	unused := map[string]bool{}
	for _, rules := range r.granted {
		for _, rule := range rules {
			for _, single := range singles(rule) {
				if len(single.NonResourceURLs) > 0 {
					continue
				}
				for _, verb := range single.Verbs {
					if name := ruleName(verb, single.APIGroups[0], single.Resources[0]); !used[name] {
						unused[name] = true
					}
				}
			}
		}
	}
	var errs []error
	for _, one := range expected {
		if !unused[one.Permission] {
			errs = append(errs, fmt.Errorf("the permission to %s is listed as unused, but it is used or no operator has it", one.Permission))
		}
		delete(unused, one.Permission)
	}
	maps.DeleteFunc(unused, func(name string, _ bool) bool { return probed[name] })
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		errs = append(errs, fmt.Errorf("the permission to %s is granted but never used", name))
	}
	return errors.Join(errs...)
}

// wholeSuite reports whether no flag excludes a test.
func wholeSuite() bool {
	whole := true
	for _, name := range []string{"test.run", "test.skip", "test.short"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != f.DefValue {
			whole = false
		}
	}
	return whole
}

// denied reports whether the request was denied because of a missing
// permission, including requests that would have granted more permissions than
// the user has.
func (r Request) denied() bool {
	return r.Annotations["authorization.k8s.io/decision"] == "forbid" ||
		r.ResponseStatus.Code == http.StatusForbidden && r.ObjectRef.APIGroup == rbacv1.GroupName
}

// probe reports whether the request searches for objects of a release without
// records. This search lists every kind, and the operator tolerates denials.
func (r Request) probe() bool {
	address, err := url.Parse(r.RequestURI)
	return err == nil && r.Verb == "list" && address.Query().Get("limit") == "1" &&
		strings.HasPrefix(address.Query().Get("labelSelector"), api.LabelOwnerUID+"=")
}

// rules returns the permissions that the request needs: an apply that creates
// an object needs create, too.
func (r Request) rules() []rbacv1.PolicyRule {
	of := func(verb string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{r.ObjectRef.APIGroup}, Resources: []string{r.resource()}}
	}
	rules := []rbacv1.PolicyRule{of(r.Verb)}
	if r.Verb == "patch" && r.ResponseStatus.Code == http.StatusCreated {
		rules = append(rules, of("create"))
	}
	return rules
}

func (r Request) resource() string {
	if r.ObjectRef.Subresource == "" {
		return r.ObjectRef.Resource
	}
	return r.ObjectRef.Resource + "/" + r.ObjectRef.Subresource
}

// ruleName names a permission. The kinds of all tests have the same name, except
// the gadgets, whose CRD is part of a chart.
func ruleName(verb, group, resource string) string {
	if strings.HasSuffix(group, ".test") && !strings.HasPrefix(group, "gadgets.") {
		_, sub, isSub := strings.Cut(resource, "/")
		resource, group = "kinds", "test"
		if isSub {
			resource += "/" + sub
		}
	}
	if group == "" {
		return verb + " " + resource
	}
	return verb + " " + resource + "." + group
}
