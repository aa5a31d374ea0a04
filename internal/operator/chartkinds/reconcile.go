package chartkinds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/chartkind"
	"github.com/chartwright/chartwright/internal/operator/crdwatch"
	"github.com/chartwright/chartwright/internal/operator/permissions"
	"github.com/chartwright/chartwright/internal/operator/readiness"
)

// reconcile runs the steps for one ChartKind. It returns when to run them again.
func (c *Controller) reconcile(ctx context.Context, name string) (after time.Duration, err error) {
	object, exists, err := c.informer.GetStore().GetByKey(name)
	if err != nil {
		return 0, err
	}
	if !exists {
		c.forget(name)
		// Another ChartKind may define the same kind.
		c.EnqueueAll()
		return 0, nil
	}
	ck, s, err := c.open(object)
	if err != nil {
		return 0, err
	}
	if s == nil {
		c.forget(name)
		return 0, nil
	}
	if done, err := c.deleteOrphaning(ctx, ck); done || err != nil {
		return 0, err
	}
	if added, err := c.addFinalizer(ctx, ck); added || err != nil {
		// The event about the change follows.
		return 0, err
	}
	facts, err := c.serve(ctx, ck, s)
	if err != nil {
		return 0, err
	}
	if !ck.DeletionTimestamp.IsZero() {
		if s.current == nil {
			// The custom resources are deleted without the chart.
			c.Kinds.Remove(ck.Name)
		}
		gone, err := c.awaitDeletion(ctx, ck, s, &facts)
		if gone || err != nil {
			return 0, err
		}
	}
	if s.starting(facts, c.Now()) {
		// The kind is served within moments. The status would change twice.
		return startPoll, nil
	}
	return s.again(facts, c.Now()), c.report(ctx, ck, facts)
}

// again returns when to reconcile the ChartKind again, 0 for never.
func (s *served) again(facts chartkind.Facts, now time.Time) time.Duration {
	due := s.due
	switch {
	case facts.Deleted && facts.Uncounted != "":
		due = now.Add(crdRetry)
	case facts.Refused.Reason != "":
		// Nothing changes before the spec is edited.
		return 0
	case s.crd.Reason != "" && facts.Conflict == "" && s.newest() != nil && s.crdDue.Before(due):
		due = s.crdDue
	}
	return max(due.Sub(now), time.Second)
}

// open parses a ChartKind, and returns what the operator knows about it, nil if another
// operator serves the ChartKind. A new one is served with the chart in the cache.
func (c *Controller) open(object any) (chartkind.ChartKind, *served, error) {
	stored, ok := object.(*unstructured.Unstructured)
	if !ok {
		return chartkind.ChartKind{}, nil, fmt.Errorf("got a %T, want a ChartKind", object)
	}
	ck, err := chartkind.Parse(stored)
	if err != nil || ck.Spec.OperatorName() != c.Operator {
		return ck, nil, err
	}
	s := c.state(ck.Name, ck.GroupKind())
	if s.uid != ck.UID {
		*s = served{uid: ck.UID, group: s.group}
		if !c.stops(ck) {
			c.Kinds.Claim(ck.Name, ck.GroupKind())
			c.restore(ck, s)
		}
	}
	return ck, s, nil
}

// restoreAll serves all ChartKinds with the charts in the cache.
func (c *Controller) restoreAll() {
	for _, object := range c.informer.GetStore().List() {
		if _, _, err := c.open(object); err != nil {
			c.Logger.Info("ChartKind not read", "error", err.Error())
		}
	}
}

// startPoll and startTime are how often and how long to wait for a kind that was added or
// replaced, before its state is reported.
const (
	startPoll = 100 * time.Millisecond
	startTime = 3 * time.Second
)

// starting reports whether a kind was just added or replaced, and is not served yet.
func (s *served) starting(facts chartkind.Facts, now time.Time) bool {
	return s.current != nil && facts.Serving.Reason == chartkind.ReasonStarting && now.Sub(s.changed) < startTime
}

// serve pulls the chart, adds the kind to the kinds of the operator, and installs the CRD.
func (c *Controller) serve(ctx context.Context, ck chartkind.ChartKind, s *served) (chartkind.Facts, error) {
	spec, err := ck.Digest()
	if err != nil {
		return chartkind.Facts{}, err
	}
	text, err := ck.Text()
	if err != nil {
		return chartkind.Facts{}, err
	}
	var facts chartkind.Facts
	var refused notAllowedError
	switch _, err := c.check(ck.Name, text); {
	case errors.As(err, &refused):
		facts.Refused = chartkind.False(chartkind.ReasonNotAllowed, err.Error())
	case err != nil:
		facts.Refused = chartkind.False(chartkind.ReasonInvalidSpec, err.Error())
	default:
		if _, found := c.older(ck); s.conflicts && !found && s.newest() == nil {
			// The conflict has ended: the kind comes back at once.
			s.tried = ""
		}
		c.pull(ctx, ck, spec, s)
	}
	if ctx.Err() != nil {
		return facts, ctx.Err()
	}
	facts.Conflict = c.conflict(ck, s)
	if s.conflicts = facts.Conflict != ""; !s.conflicts {
		c.advance(ctx, ck, s)
	}
	facts.Pulled, facts.Verified, facts.CRD = s.pulled, s.verified, s.crd
	facts.Invalid, facts.InvalidReason = s.invalid, s.invalidReason
	if s.current == nil || facts.Conflict != "" {
		return facts, nil
	}
	facts.Chart, facts.Current = &s.current.chart, s.current.entry.Spec == spec
	state := c.Kinds.State(s.current.kind.GVK().GroupKind())
	facts.Serving, facts.CRD = serving(state), c.established(ck, s, state)
	facts.Permissions, facts.RulesAlwaysNeeded = complete(state)
	return facts, nil
}

// older returns the ChartKind that has the kind or a name of the kind instead of a ChartKind,
// because it is older.
func (c *Controller) older(ck chartkind.ChartKind) (older chartkind.ChartKind, found bool) {
	for _, object := range c.informer.GetStore().List() {
		stored, ok := object.(*unstructured.Unstructured)
		if !ok || stored.GetName() == ck.Name {
			continue
		}
		if other, err := chartkind.Parse(stored); err == nil && other.Precedes(ck) {
			return other, true
		}
	}
	return older, false
}

// conflict returns who serves the kind instead of the ChartKind. Of several ChartKinds,
// the oldest one has the kind.
func (c *Controller) conflict(ck chartkind.ChartKind, s *served) string {
	if other, found := c.older(ck); found {
		c.Kinds.Remove(ck.Name)
		s.current = nil
		return fmt.Sprintf("%s is already defined by the ChartKind %s, which is older: delete one of the two", ck.GroupKind(), other.Name)
	}
	if newest := s.newest(); newest != nil {
		return c.Kinds.Conflict(ck.Name, newest.kind)
	}
	return ""
}

// advance serves the next version, after its CRD. A CRD that would break custom resources,
// or that is managed by someone else, keeps what is served so far.
func (c *Controller) advance(ctx context.Context, ck chartkind.ChartKind, s *served) {
	newest := s.newest()
	if newest == nil || !c.installCRD(ctx, ck, s, newest) || s.next == nil {
		return
	}
	s.current, s.next, s.changed = s.next, nil, c.Now()
	c.Kinds.Put(ck.Name, s.current.kind)
	c.store(ck, s.current)
	c.Logger.Info("kind added", "chartKind", ck.Name, "kind", s.current.kind.Kind, "group", s.current.kind.Group,
		"chart", s.current.chart.Name, "version", s.current.chart.Version)
}

// installCRD installs or updates the CRD if the spec requests it and the kind has changed.
// It reports whether the kind can be served. A standby only checks.
func (c *Controller) installCRD(ctx context.Context, ck chartkind.ChartKind, s *served, v *version) bool {
	if !ck.Spec.InstallCRD {
		s.crd, s.crdFor = chartkind.Finding{}, ""
		return true
	}
	state := c.Kinds.State(v.kind.GVK().GroupKind())
	kind := fmt.Sprintf("%s/%s/%v", v.entry.Spec, v.entry.Digest, c.leads())
	if s.crdFor == kind && (s.crd.Reason == "" && state.State != readiness.Waiting || c.Now().Before(s.crdDue)) {
		return s.crdServes
	}
	err := c.InstallCRD(ctx, v.kind, c.leads())
	s.crdFor, s.crd, s.crdServes, s.crdDue = kind, chartkind.Finding{}, true, c.Now().Add(crdRetry)
	switch {
	case err == nil:
	case errors.Is(err, crdwatch.ErrForeign):
		s.crd = chartkind.False(chartkind.ReasonCRDForeign, err.Error()+": to serve the kind with it as it is, set spec.installCRD: false")
		s.crdServes = false
	case errors.Is(err, crdwatch.ErrUnchanged):
		s.crd = chartkind.False(chartkind.ReasonCRDBreaks, err.Error())
		s.crdServes = false
	case len(permissions.Refusals(err)) > 0:
		s.crd = chartkind.False(chartkind.ReasonCRDFailed, err.Error()+". "+crdwatch.MissingRulesAdvice(v.kind))
	default:
		s.crd = chartkind.False(chartkind.ReasonCRDFailed, err.Error())
	}
	return s.crdServes
}

// crdRetry is the delay between attempts to install a CRD.
const crdRetry = 10 * time.Second

// established returns the finding about the CRD.
func (c *Controller) established(ck chartkind.ChartKind, s *served, state State) chartkind.Finding {
	name := crd.Name(s.current.kind)
	switch {
	case s.crd.Reason != "":
		return s.crd
	case state.State == readiness.Waiting && ck.Spec.InstallCRD:
		return chartkind.Undecided(chartkind.ReasonStarting, fmt.Sprintf("the API server does not serve the CustomResourceDefinition %s yet", name))
	case state.State == readiness.Waiting:
		return chartkind.False(chartkind.ReasonCRDMissing, fmt.Sprintf(
			"the CustomResourceDefinition %s is missing or lacks the version %s: install it, or set spec.installCRD: true", name, s.current.kind.Version))
	case state.State == "":
		return chartkind.Undecided(chartkind.ReasonStarting, "")
	default:
		return chartkind.True(chartkind.ReasonEstablished, "the API server serves "+s.current.kind.GVK().GroupKind().String())
	}
}

// serving returns whether the custom resources of a kind are watched.
func serving(state State) chartkind.Finding {
	switch state.State {
	case readiness.Serving:
		return chartkind.True(chartkind.ReasonServing, "")
	case "", readiness.Starting, readiness.Waiting:
		return chartkind.Undecided(chartkind.ReasonStarting, "the operator starts to serve the kind")
	default:
		return chartkind.False(chartkind.ReasonNotServed, fmt.Sprintf("the custom resources cannot be watched: %s", state.text()))
	}
}

func (s State) text() string {
	if s.State == readiness.Forbidden {
		return "the operator lacks the permission; see " + chartkind.ConditionPermissionsComplete
	}
	return s.Reason
}

// complete returns the finding about the rules of the operator's role, and whether every
// release needs one that is missing.
func complete(state State) (finding chartkind.Finding, always bool) {
	switch {
	case len(state.Missing) > 0:
		for _, rule := range state.Missing {
			always = always || rule.Always
		}
		return chartkind.False(chartkind.ReasonRulesMissing, "add to the rules of the operator's role: "+permissions.Text(state.Missing)), always
	case state.Unknown != "":
		return chartkind.Undecided(chartkind.ReasonUnknown, state.Unknown), false
	case !state.Known:
		return chartkind.Undecided(chartkind.ReasonUnknown, "the rules of the chart are being derived"), false
	default:
		return chartkind.True(chartkind.ReasonComplete, ""), false
	}
}
