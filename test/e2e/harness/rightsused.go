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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// rights is what the operators of a run may do, for Main to compare with what
// they did.
type rights struct {
	mu sync.Mutex
	// granted and lacking are by user.
	granted, lacking map[string][]rbacv1.PolicyRule
	// auditFrom is where the audit log ended when the run began.
	auditFrom int64
}

func (r *rights) note(user string, granted, lacking []rbacv1.PolicyRule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.granted == nil {
		r.granted, r.lacking = map[string][]rbacv1.PolicyRule{}, map[string][]rbacv1.PolicyRule{}
	}
	r.granted[user] = append(r.granted[user], granted...)
	r.lacking[user] = append(r.lacking[user], lacking...)
}

// Unused is a right that some operator has and no test's operator uses, as
// "patch deployments.apps", and what it is for.
type Unused struct{ Right, For string }

// check reads the audit log of the run. It is an error if an operator was
// refused what no test took away, or if rights that nothing used are others
// than expected; of these it says nothing where only some of the tests ran.
func (r *rights) check(ctx context.Context, unused []Unused) error {
	if err := syncLog(ctx, r.auditFrom); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var refused []string
	used := map[string]bool{}
	err := readAudit(r.auditFrom, ":"+SystemNamespace+":", func(request Request, _ int64) {
		user := request.User.Username
		if _, ours := r.granted[user]; !ours {
			return
		}
		if request.ImpersonatedUser.Username != "" {
			// What it may do in another's name is that one's business.
			used[rightOf("impersonate", "", "serviceaccounts")] = true
			return
		}
		rules := request.rules()
		if request.refused() {
			if !request.probe() && len(permissions.Allowed(r.lacking[user], rules[0])) > 0 {
				refused = append(refused, user+": "+request.RequestURI+": "+request.ResponseStatus.Message)
			}
			return
		}
		for _, rule := range rules {
			used[rightOf(rule.Verbs[0], rule.APIGroups[0], rule.Resources[0])] = true
		}
	})
	if err != nil {
		return err
	}
	var errs []error
	if len(refused) > 0 {
		errs = append(errs, fmt.Errorf("operators were refused what they need:\n  %s", strings.Join(slices.Compact(slices.Sorted(slices.Values(refused))), "\n  ")))
	}
	if !wholeSuite() || len(unused) == 0 {
		return errors.Join(errs...)
	}
	return errors.Join(append(errs, r.compare(used, unused))...)
}

// compare tells which rights were not used that were to be, and the reverse.
func (r *rights) compare(used map[string]bool, expected []Unused) error {
	idle := map[string]bool{}
	for _, rules := range r.granted {
		for _, rule := range rules {
			for _, single := range singles(rule) {
				if len(single.NonResourceURLs) > 0 {
					continue
				}
				for _, verb := range single.Verbs {
					if name := rightOf(verb, single.APIGroups[0], single.Resources[0]); !used[name] {
						idle[name] = true
					}
				}
			}
		}
	}
	var errs []error
	for _, one := range expected {
		if !idle[one.Right] {
			errs = append(errs, fmt.Errorf("the right to %s is used, or nobody has it, and is listed as never used", one.Right))
		}
		delete(idle, one.Right)
	}
	for _, name := range slices.Sorted(maps.Keys(idle)) {
		errs = append(errs, fmt.Errorf("the right to %s is given and never used", name))
	}
	return errors.Join(errs...)
}

// wholeSuite tells that no flag leaves out a test.
func wholeSuite() bool {
	whole := true
	for _, name := range []string{"test.run", "test.skip", "test.short"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != f.DefValue {
			whole = false
		}
	}
	return whole
}

// refused tells a request that was refused for lack of a right, or of those
// that it would have granted.
func (r Request) refused() bool {
	return r.Annotations["authorization.k8s.io/decision"] == "forbid" ||
		r.ResponseStatus.Code == http.StatusForbidden && r.ObjectRef.APIGroup == rbacv1.GroupName
}

// probe tells the search for objects of a release whose records are gone. It
// asks for every kind there is, and takes a refusal for "none of ours".
func (r Request) probe() bool {
	asked, err := url.Parse(r.RequestURI)
	return err == nil && r.Verb == "list" && asked.Query().Get("limit") == "1" &&
		strings.HasPrefix(asked.Query().Get("labelSelector"), api.LabelOwnerUID+"=")
}

// rules are what the request takes: an apply that makes an object is a creation,
// too.
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

// rightOf names a right. The kinds of the tests are all one.
func rightOf(verb, group, resource string) string {
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

// syncLog waits until the audit log holds all that was asked before.
func syncLog(ctx context.Context, from int64) error {
	marker := "audit-" + rand.String(10)
	// That there is no such object is the answer that is expected.
	_, _ = shared.typed.CoreV1().ConfigMaps(SystemNamespace).Get(ctx, marker, metav1.GetOptions{})
	err := wait.PollUntilContextTimeout(ctx, interval, deadline, true, func(context.Context) (bool, error) {
		found := false
		err := readAudit(from, marker, func(Request, int64) { found = true })
		return found, err
	})
	if err != nil {
		return fmt.Errorf("wait for the audit log to catch up: %w", err)
	}
	return nil
}
