package permissions

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
)

// checkInterval is the delay before the operator's rules are read again, while rules are
// missing and after a forbidden request.
const checkInterval = 10 * time.Second

// allNamespaces is the namespace to review for an operator of all namespaces. No namespace
// can have this name, so that no RoleBinding is in it and the review lists only what
// ClusterRoleBindings allow.
const allNamespaces = "*"

// errIncomplete marks that the API server cannot list an account's rules: one of its
// authorizers, usually a webhook, supports access reviews only.
var errIncomplete = errors.New("the API server cannot list all rules")

// Reviewer returns the rules of the operator in a namespace.
type Reviewer func(ctx context.Context, namespace string) ([]rbacv1.PolicyRule, error)

// NewReviewer returns a Reviewer that makes one request to the API server.
func NewReviewer(reviews authorizationclient.SelfSubjectRulesReviewInterface) Reviewer {
	return func(ctx context.Context, namespace string) ([]rbacv1.PolicyRule, error) {
		review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
		answer, err := reviews.Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("read the operator's rules: %w", err)
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
	// Namespaces are the namespaces that the operator watches; none means all.
	Namespaces []string
	Mapper     meta.RESTMapper
	Review     Reviewer
	Logger     logr.Logger
	// OnChange is called when the missing rules of a kind, or the reason why they are
	// unknown, have changed.
	OnChange func(kind schema.GroupKind, missing []Rule, unknown string)
	// OnDerived is called when the rules of a kind's chart have been derived and compared;
	// nil calls nothing.
	OnDerived func(kind schema.GroupKind)
}

// Checker finds out which rules for its kinds the operator lacks. It runs on every replica.
//
// Rules that a kind requires regardless of its chart are checked from the start. Those of
// the chart are derived only after the API server has refused a request for the kind,
// because the derivation of a large chart takes many seconds of CPU time.
type Checker struct {
	Config

	// requested receives a value after a forbidden request.
	requested chan struct{}
	// queued receives a value when a kind needs a derivation, and derived receives each kind
	// after its derivation.
	queued  chan struct{}
	derived chan *KindChecker

	mu    sync.Mutex
	kinds []*KindChecker
	// queue are the kinds that need a derivation.
	queue []*KindChecker
	// have are the operator's rules by namespace, as last read. unread is why the rules of
	// other namespaces are unknown.
	have   map[string][]rbacv1.PolicyRule
	unread string
	// changed is closed and replaced after each change.
	changed chan struct{}
}

// NewChecker returns a Checker that has not started.
func NewChecker(config Config) *Checker {
	c := &Checker{
		Config: config, requested: make(chan struct{}, 1), changed: make(chan struct{}),
		queued: make(chan struct{}, 1), derived: make(chan *KindChecker), have: map[string][]rbacv1.PolicyRule{},
	}
	if len(c.Namespaces) == 0 {
		c.Namespaces = []string{allNamespaces}
	}
	for _, kind := range config.Kinds {
		c.kinds = append(c.kinds, c.newKind(kind))
	}
	return c
}

func (c *Checker) newKind(kind catalog.Kind) *KindChecker {
	return &KindChecker{all: c, kind: kind, required: ownRules(kind, c.Operator, c.namespaced())}
}

// Add adds a kind, or replaces the kind with the same group and name, and compares its
// rules with the operator's rules as last read.
func (c *Checker) Add(kind catalog.Kind) { c.add(c.newKind(kind)) }

// AddRemoved adds a kind that was removed, or replaces the kind with the same group and
// name. Missing rules of a removed kind do not repeat the check.
func (c *Checker) AddRemoved(kind catalog.Kind) {
	added := c.newKind(kind)
	added.removed = true
	c.add(added)
}

func (c *Checker) add(added *KindChecker) {
	c.Remove(added.kind.GVK().GroupKind())
	c.mu.Lock()
	c.kinds = append(c.kinds, added)
	have, unread := c.have, c.unread
	c.mu.Unlock()
	if (len(have) > 0 || unread != "") && c.compare(added, have, unread) {
		c.Check()
	}
}

// Remove removes a kind.
func (c *Checker) Remove(kind schema.GroupKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := func(k *KindChecker) bool { return k.kind.GVK().GroupKind() == kind }
	c.kinds, c.queue = slices.DeleteFunc(slices.Clone(c.kinds), is), slices.DeleteFunc(c.queue, is)
}

// all returns the kinds.
func (c *Checker) all() []*KindChecker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kinds
}

// Start checks once, every checkInterval while rules are missing, and after each call of
// Check. It compares the rules of a kind again when they have been derived.
func (c *Checker) Start(ctx context.Context) error {
	// A derivation cannot be interrupted. The process ends without waiting for it, because
	// it writes nothing.
	go c.deriveQueued(ctx)
	for ctx.Err() == nil {
		pause := time.After(checkInterval)
		for again := c.check(ctx); pause != nil || !again; {
			select {
			case <-ctx.Done():
				return nil
			case <-pause:
				pause = nil
			case <-c.requested:
				again = true
			case k := <-c.derived:
				if c.compare(k, c.have, c.unread) {
					again = true
				}
				if c.OnDerived != nil {
					c.OnDerived(k.kind.GVK().GroupKind())
				}
			}
		}
	}
	return nil
}

// deriveQueued derives the rules of one kind at a time until the context ends.
func (c *Checker) deriveQueued(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.queued:
		}
		for k := c.dequeue(); k != nil; k = c.dequeue() {
			k.derive()
			select {
			case c.derived <- k:
			case <-ctx.Done():
				return
			}
		}
	}
}

// dequeue returns the next kind that needs a derivation, nil if there is none.
func (c *Checker) dequeue() *KindChecker {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return nil
	}
	next := c.queue[0]
	c.queue = c.queue[1:]
	return next
}

// namespaced reports whether the operator watches only some namespaces.
func (c *Checker) namespaced() bool { return c.Namespaces[0] != allNamespaces }

// Check requests another check.
func (c *Checker) Check() {
	select {
	case c.requested <- struct{}{}:
	default: // a check is already requested
	}
}

// Changed returns a channel that is closed at the next change of the missing rules.
func (c *Checker) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Kind returns the checker of a kind, nil if the operator does not serve the kind.
func (c *Checker) Kind(kind schema.GroupKind) *KindChecker {
	for _, k := range c.all() {
		if k.kind.GVK().GroupKind() == kind {
			return k
		}
	}
	return nil
}

// check reads the operator's rules, with one request per namespace, compares them with the
// required rules of every kind, and reports changes. It returns whether any rule is
// missing.
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
			// Use the rules that were read before, and repeat the check.
			c.Logger.Error(err, "failed to read the operator's rules")
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
	c.mu.Lock()
	c.have, c.unread = have, unknown
	c.mu.Unlock()
	for _, k := range c.all() {
		if c.compare(k, have, unknown) {
			missing = true
		}
	}
	return missing
}

// compare finds the missing rules of a kind, and reports a change. It returns whether any
// rule is missing, false for a removed kind.
func (c *Checker) compare(k *KindChecker, have map[string][]rbacv1.PolicyRule, unknown string) (lacks bool) {
	c.mu.Lock()
	if !slices.Contains(c.kinds, k) {
		// The kind was removed or replaced concurrently.
		c.mu.Unlock()
		return false
	}
	if k.queued && !k.complete {
		// The report follows the derivation, so that it contains all missing rules.
		c.mu.Unlock()
		return !k.removed
	}
	missing := missingRules(k.required, c.Namespaces, have)
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
	return len(missing) > 0 && !k.removed
}
