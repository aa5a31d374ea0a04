package permissions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// checkInterval is how long to wait before the operator's rules are read again:
// while some are missing, and after a request was forbidden.
const checkInterval = 10 * time.Second

// allNamespaces is reviewed by an operator of all namespaces. Since no namespace
// can have this name, no RoleBinding is in it, and a review of it lists what
// ClusterRoleBindings allow.
const allNamespaces = "*"

// errIncomplete marks that the API server cannot list an account's rules: one of
// its authorizers, most often a webhook, answers access reviews only.
var errIncomplete = errors.New("the API server cannot list them all")

// Reviewer returns the rules that the operator has in a namespace.
type Reviewer func(ctx context.Context, namespace string) ([]rbacv1.PolicyRule, error)

// NewReviewer returns a Reviewer that sends one request to the API server.
func NewReviewer(reviews authorizationclient.SelfSubjectRulesReviewInterface) Reviewer {
	return func(ctx context.Context, namespace string) ([]rbacv1.PolicyRule, error) {
		review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
		answer, err := reviews.Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("ask for the operator's rules: %w", err)
		}
		if answer.Status.Incomplete {
			return nil, fmt.Errorf("%w: %s", errIncomplete, answer.Status.EvaluationError)
		}
		var rules []rbacv1.PolicyRule
		for _, r := range answer.Status.ResourceRules {
			rules = append(rules, rbacv1.PolicyRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
		}
		for _, r := range answer.Status.NonResourceRules {
			rules = append(rules, rbacv1.PolicyRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
		}
		return rules, nil
	}
}

// Config is what a Checker needs.
type Config struct {
	// Operator is the name of the operator.
	Operator string
	Kinds    []catalog.Kind
	// Namespaces are those that the operator watches; none means all.
	Namespaces []string
	Mapper     meta.RESTMapper
	Review     Reviewer
	Logger     logr.Logger
	// OnChange is called when the missing rules of a kind have changed, or the
	// reason why they are unknown.
	OnChange func(kind schema.GroupKind, missing []Rule, unknown string)
}

// Checker finds out which rules the operator lacks for its kinds. It runs
// on every replica.
type Checker struct {
	Config

	// requested receives a value when a request was forbidden.
	requested chan struct{}

	mu    sync.Mutex
	kinds []*KindChecker
	// have are the rules by namespace, as far as they could be read.
	have map[string][]rbacv1.PolicyRule
	// changed is closed and replaced after each change.
	changed chan struct{}
}

// KindChecker knows the rules of one kind.
type KindChecker struct {
	all  *Checker
	kind catalog.Kind

	// The other fields are guarded by all.mu.

	required []Rule
	// marked: the rules that every release requires are marked in required.
	marked bool
	// underived is why the required rules are unknown, but for those that were
	// added because a request was forbidden.
	underived error
	missing   []Rule
	unknown   string
	// checked: missing and unknown are known.
	checked bool
}

// NewChecker returns a Checker that has not checked anything yet.
func NewChecker(config Config) *Checker {
	c := &Checker{
		Config: config, requested: make(chan struct{}, 1), changed: make(chan struct{}),
		have: map[string][]rbacv1.PolicyRule{},
	}
	if len(c.Namespaces) == 0 {
		c.Namespaces = []string{allNamespaces}
	}
	for _, kind := range config.Kinds {
		c.kinds = append(c.kinds, &KindChecker{all: c, kind: kind})
	}
	return c
}

// Start checks once, again every checkInterval while rules are missing, and after
// each call of Check.
func (c *Checker) Start(ctx context.Context) error {
	derived := make(chan struct{})
	// A large chart takes a minute, and nothing ends its derivation. It writes
	// nothing, so that the process ends without waiting for it.
	go func() {
		defer close(derived)
		for _, k := range c.kinds {
			if ctx.Err() == nil {
				k.derive()
			}
		}
	}()
	select {
	case <-derived:
	case <-ctx.Done():
	}
	for ctx.Err() == nil {
		pause := time.After(checkInterval)
		select {
		case <-c.requested: // this check answers it
		default:
		}
		if !c.check(ctx) {
			select {
			case <-ctx.Done():
			case <-c.requested:
			}
		}
		select {
		case <-ctx.Done():
		case <-pause:
		}
	}
	return nil
}

// Check requests another check.
func (c *Checker) Check() {
	select {
	case c.requested <- struct{}{}:
	default: // a check is requested already
	}
}

// Changed returns a channel that is closed when the missing rules change next.
func (c *Checker) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Kind returns the checker of a kind, nil if it is not one of the operator's.
func (c *Checker) Kind(kind schema.GroupKind) *KindChecker {
	for _, k := range c.kinds {
		if k.kind.GVK().GroupKind() == kind {
			return k
		}
	}
	return nil
}

// derive finds out which rules the kind requires. It takes from ten milliseconds
// to a minute, depending on the chart.
func (k *KindChecker) derive() {
	required, err := rulesOf(k.kind, k.all.Operator, k.all.Namespaces[0] != allNamespaces)
	if err != nil {
		k.all.Logger.Error(err, "required rules unknown", "kind", k.kind.Kind, "group", k.kind.Group)
	}
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	k.required, k.underived = append(required, k.required...), err
}

// check reads the operator's rules, by one request for each namespace, compares
// them with the required rules of every kind, and reports changes. It reports
// whether any rule is missing.
func (c *Checker) check(ctx context.Context) (missing bool) {
	have, unknown := map[string][]rbacv1.PolicyRule{}, ""
	for _, namespace := range c.Namespaces {
		rules, err := c.Review(ctx, namespace)
		switch {
		case ctx.Err() != nil:
			return false
		case errors.Is(err, errIncomplete), apierrors.IsForbidden(err):
			unknown = err.Error()
		case err != nil:
			// The rules that were read before still count, and the check is repeated.
			c.Logger.Error(err, "rules of the operator unknown")
			missing = true
			rules, known := c.have[namespace]
			if !known {
				unknown = err.Error()
				continue
			}
			have[namespace] = rules
		default:
			have[namespace] = rules
		}
	}
	for _, k := range c.kinds {
		if c.compare(k, have, unknown) {
			missing = true
		}
	}
	return missing
}

// compare finds out which rules a kind lacks, and reports a change.
func (c *Checker) compare(k *KindChecker, have map[string][]rbacv1.PolicyRule, unknown string) (lacks bool) {
	c.mu.Lock()
	c.have = have
	missing := missingRules(k.required, c.Namespaces, have)
	if len(missing) > 0 && !k.marked {
		if err := markAlways(k.kind, k.required, c.Mapper); err != nil {
			c.Logger.Error(err, "failed to classify missing rules", "kind", k.kind.Kind, "group", k.kind.Group)
		}
		k.marked = true
		missing = missingRules(k.required, c.Namespaces, have)
	}
	if k.underived != nil {
		unknown = k.underived.Error()
	}
	changed := !k.checked && (len(missing) > 0 || unknown != "") || !slices.EqualFunc(missing, k.missing, Rule.equal) || unknown != k.unknown
	k.missing, k.unknown, k.checked = missing, unknown, true
	c.mu.Unlock()
	if changed {
		c.OnChange(k.kind.GVK().GroupKind(), missing, unknown)
		c.mu.Lock()
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
	}
	return len(missing) > 0
}

// Missing returns the rules that every release of the kind in a namespace requires
// and that the operator lacks, and whether a check has been made.
func (k *KindChecker) Missing(namespace string) (rules string, known bool) {
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	return Text(slices.DeleteFunc(slices.Clone(k.missing), func(m Rule) bool { return !m.Always || !m.in(namespace) })), k.checked
}

// Refused returns advice on which rules would have allowed a request that was
// forbidden, and requests a check.
func (k *KindChecker) Refused(err error, account string) string {
	var own, others []string
	for _, refused := range Refusals(err) {
		if refused.user == account {
			others = append(others, permissions.RuleText(refused.rule))
			continue
		}
		for _, rule := range k.forbidden(refused) {
			own = append(own, permissions.RuleText(rule))
		}
	}
	var advice []string
	if len(own) > 0 {
		k.all.Check()
		advice = append(advice, "Add to the rules of the operator's role: "+strings.Join(own, ", "))
	}
	if len(others) > 0 {
		advice = append(advice, fmt.Sprintf("Give %s the rules: %s", account, strings.Join(others, ", ")))
	}
	return strings.Join(advice, ". ")
}

// forbidden returns which rules to add where one was missing, and adds the missing
// rule to those that the kind requires.
func (k *KindChecker) forbidden(refused Refusal) []rbacv1.PolicyRule {
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	have, ok := k.all.have[allNamespaces]
	if !ok {
		have = k.all.have[refused.namespace]
	}
	missing := missingFrom(k.required, have, refused.rule)
	if !slices.ContainsFunc(k.required, func(r Rule) bool {
		return len(permissions.Allowed([]rbacv1.PolicyRule{r.PolicyRule}, refused.rule)) == 0
	}) {
		k.required = append(k.required, Rule{Rule: permissions.Rule{PolicyRule: refused.rule, Why: "it was forbidden"}})
	}
	return missing
}
