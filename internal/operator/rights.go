package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// lookPause is how long to wait before the operator's rules are read again:
// while some are missing, and after something was forbidden.
const lookPause = 10 * time.Second

// rights finds out which rules the operator lacks for its kinds, and when it has
// got them. It is a Runnable that needs no lease. While nothing is missing and
// nothing is forbidden it asks for nothing.
type rights struct {
	operator   string
	namespaces []string
	mapper     meta.RESTMapper
	logger     logr.Logger
	review     reviewer
	// told is called for a kind of which something else is missing than before.
	told func(kind schema.GroupKind, lacks []lack, unknown string)
	// asked is told that something was forbidden.
	asked chan struct{}

	mu    sync.Mutex
	kinds []*kindRights
	// have are the rules by namespace, as far as they could be read.
	have map[string][]rbacv1.PolicyRule
}

// kindRights are those that one kind needs. They are its reconciler's Rights.
type kindRights struct {
	all  *rights
	kind catalog.Kind

	// These are guarded by all.mu.
	needs  []need
	marked bool
	// underived is why the needs are not known, but for what was forbidden.
	underived error
	lacks     []lack
	unknown   string
	// looked: lacks and unknown tell of this process.
	looked bool
}

func newRights(o Options, mapper meta.RESTMapper, review reviewer, logger logr.Logger) *rights {
	r := &rights{
		operator: o.Name, namespaces: o.Namespaces, mapper: mapper, logger: logger, review: review,
		asked: make(chan struct{}, 1), have: map[string][]rbacv1.PolicyRule{},
	}
	if len(r.namespaces) == 0 {
		r.namespaces = []string{everywhere}
	}
	for _, kind := range o.Kinds {
		r.kinds = append(r.kinds, &kindRights{all: r, kind: kind})
	}
	return r
}

// NeedLeaderElection answers no: a standby is to say what it lacks, too.
func (r *rights) NeedLeaderElection() bool { return false }

// Start looks, and looks again while something is missing.
func (r *rights) Start(ctx context.Context) error {
	// A kind with a large chart takes a second, which nobody is to wait for who
	// stops.
	derived := make(chan struct{})
	go func() {
		defer close(derived)
		for _, k := range r.kinds {
			if ctx.Err() == nil {
				k.derive()
			}
		}
	}()
	select {
	case <-derived:
	case <-ctx.Done():
		return nil
	}
	for ctx.Err() == nil {
		pause := time.After(lookPause)
		select {
		case <-r.asked: // this look answers it
		default:
		}
		if !r.look(ctx) {
			select {
			case <-ctx.Done():
			case <-r.asked:
			}
		}
		select {
		case <-ctx.Done():
		case <-pause:
		}
	}
	return nil
}

// derive finds out what the kind needs, which takes from some ten milliseconds to
// a second, by its chart.
func (k *kindRights) derive() {
	needs, err := needsOf(k.kind, k.all.operator, k.all.namespaces[0] != everywhere)
	if err != nil {
		k.all.logger.Error(err, "rules not known", "kind", k.kind.Kind, "group", k.kind.Group)
	}
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	k.needs, k.underived = append(needs, k.needs...), err
}

// ask calls for another look.
func (r *rights) ask() {
	select {
	case r.asked <- struct{}{}:
	default: // somebody has asked already
	}
}

// look reads the operator's rules, by one request a namespace, compares them
// with what every kind needs, and tells where something has changed. It returns
// whether anything is missing.
func (r *rights) look(ctx context.Context) (missing bool) {
	have, unknown := map[string][]rbacv1.PolicyRule{}, ""
	for _, namespace := range r.namespaces {
		rules, err := r.review(ctx, namespace)
		switch {
		case ctx.Err() != nil:
			return false
		case errors.Is(err, errIncomplete), apierrors.IsForbidden(err):
			unknown = err.Error()
		case err != nil:
			// What was known a moment ago still is; and it is tried again.
			r.logger.Error(err, "rights not known")
			missing = true
			rules, known := r.have[namespace]
			if !known {
				unknown = err.Error()
				continue
			}
			have[namespace] = rules
		default:
			have[namespace] = rules
		}
	}
	for _, k := range r.kinds {
		if r.compare(k, have, unknown) {
			missing = true
		}
	}
	return missing
}

// compare finds out what a kind lacks, and tells if that has changed.
func (r *rights) compare(k *kindRights, have map[string][]rbacv1.PolicyRule, unknown string) (missing bool) {
	r.mu.Lock()
	r.have = have
	lacks := lacking(k.needs, r.namespaces, have)
	if len(lacks) > 0 && !k.marked {
		if err := markAlways(k.kind, k.needs, r.mapper); err != nil {
			r.logger.Error(err, "rules not told apart", "kind", k.kind.Kind, "group", k.kind.Group)
		}
		k.marked = true
		lacks = lacking(k.needs, r.namespaces, have)
	}
	if k.underived != nil {
		unknown = k.underived.Error()
	}
	changed := !k.looked && (len(lacks) > 0 || unknown != "") || !slices.EqualFunc(lacks, k.lacks, sameLack) || unknown != k.unknown
	k.lacks, k.unknown, k.looked = lacks, unknown, true
	r.mu.Unlock()
	if changed {
		r.told(k.kind.GVK().GroupKind(), lacks, unknown)
	}
	return len(lacks) > 0
}

func sameLack(a, b lack) bool {
	return a.always == b.always && permissions.RuleText(a.PolicyRule) == permissions.RuleText(b.PolicyRule) && slices.Equal(a.namespaces, b.namespaces)
}

// of returns the rights of a kind.
func (r *rights) of(kind schema.GroupKind) *kindRights {
	for _, k := range r.kinds {
		if k.kind.GVK().GroupKind() == kind {
			return k
		}
	}
	return nil
}

// Missing names the rules that every release of the kind in a namespace needs
// and that the operator lacks.
func (k *kindRights) Missing(namespace string) (rules string, known bool) {
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	concern := slices.DeleteFunc(slices.Clone(k.lacks), func(l lack) bool { return !l.always || !l.in(namespace) })
	return rulesText(concern), k.looked
}

// Refused says which rules would have allowed what was forbidden, and calls for
// a look at what else is.
func (k *kindRights) Refused(err error, account string) string {
	var own, theirs []string
	for _, refused := range refusals(err) {
		if refused.user == account {
			theirs = append(theirs, permissions.RuleText(refused.rule))
			continue
		}
		for _, rule := range k.forbidden(refused) {
			own = append(own, permissions.RuleText(rule))
		}
	}
	var advice []string
	if len(own) > 0 {
		k.all.ask()
		advice = append(advice, "Add to the rules of the operator's role: "+strings.Join(own, ", "))
	}
	if len(theirs) > 0 {
		advice = append(advice, fmt.Sprintf("Give %s the rules: %s", account, strings.Join(theirs, ", ")))
	}
	return strings.Join(advice, ". ")
}

// forbidden returns which rules to add where one was missing, and from now on
// counts that one among what the kind needs.
func (k *kindRights) forbidden(refused refusal) []rbacv1.PolicyRule {
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	have, ok := k.all.have[everywhere]
	if !ok {
		have = k.all.have[refused.namespace]
	}
	missing := missingFrom(k.needs, have, refused.rule)
	if !slices.ContainsFunc(k.needs, func(n need) bool {
		return len(permissions.Allowed([]rbacv1.PolicyRule{n.PolicyRule}, refused.rule)) == 0
	}) {
		k.needs = append(k.needs, need{Rule: permissions.Rule{PolicyRule: refused.rule, Why: "it was forbidden"}})
	}
	return missing
}
