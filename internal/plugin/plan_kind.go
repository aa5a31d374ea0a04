package plugin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/planner"
)

// kindPlanOutput is the output of plan for a kind with -o json and yaml.
type kindPlanOutput struct {
	Kind  string `json:"kind"`
	Chart string `json:"chart"`
	// Results counts the custom resources by result.
	Results       map[planResult]int `json:"results"`
	PodsRestarted int64              `json:"podsRestarted"`
	Plans         []planOutput       `json:"plans"`
}

// planKind plans all custom resources of a kind.
func (s *session) planKind(ctx context.Context, t target, f planFlags) error {
	kind, err := planner.FindKind(ctx, s.dynamic, t.mapping.GroupVersionKind.GroupKind(), f.Charts)
	if err != nil {
		return err
	}
	crs, err := t.listManaged(ctx)
	if err != nil {
		return err
	}
	p, err := planner.New(ctx, s.config, s.mapper, kind, planner.Scope{Namespace: t.namespace})
	if err != nil {
		return s.explainRecords(t, &unstructured.Unstructured{}, err)
	}
	out := kindPlanOutput{
		Kind: t.resource().String(), Chart: kind.Chart.Name() + "-" + kind.Chart.Version(),
		Results: map[planResult]int{}, Plans: make([]planOutput, len(crs)),
	}
	concurrently(len(crs), func(i int) { out.Plans[i] = planOf(ctx, p, out, &crs[i]) })
	for _, plan := range out.Plans {
		out.Results[plan.Result]++
		out.PodsRestarted += plan.PodsRestarted
	}
	if err := s.print(out, func() string { return s.painter().kindPlan(out) }); err != nil {
		return err
	}
	for _, result := range []planResult{planFailed, approvalNeeded, changesUnknown, changes} {
		if out.Results[result] > 0 {
			return result.exit()
		}
	}
	return nil
}

// planOf plans a custom resource. The output includes the error.
func planOf(ctx context.Context, p *planner.Planner, of kindPlanOutput, cr *unstructured.Unstructured) planOutput {
	planned, err := p.Plan(ctx, cr)
	if err != nil {
		return planOutput{Kind: of.Kind, Namespace: cr.GetNamespace(), Name: cr.GetName(), Result: planFailed, Error: err.Error(), Changes: []plannedChange{}}
	}
	return newPlanOutput(of.Kind, cr, of.Chart, planned)
}

// listManaged lists the custom resources of a kind that Chartwright manages.
func (t target) listManaged(ctx context.Context) ([]unstructured.Unstructured, error) {
	list, err := t.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, t.need("list", "to plan all custom resources").explain(err)
	}
	return slices.DeleteFunc(list.Items, func(cr unstructured.Unstructured) bool { return !managed(&cr) }), nil
}

// shownNames is the number of custom resources that a line of the summary names.
const shownNames = 3

// kindPlan formats the plans of a kind: one paragraph for all custom resources that change
// in the same way, the smallest groups first.
func (p painter) kindPlan(out kindPlanOutput) string {
	groups := map[string][]string{}
	for _, plan := range out.Plans {
		summary := plan.summary()
		groups[summary] = append(groups[summary], join("/", plan.Namespace, plan.Name))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s, %s: %s", out.Chart, api.Counted(len(out.Plans), "custom resource", "custom resources"), resultCounts(out.Results))
	if out.PodsRestarted > 0 {
		fmt.Fprintf(&text, "; %s", api.Counted(out.PodsRestarted, "pod restarts", "pods restart"))
	}
	text.WriteString(".\n")
	order := func(a, b string) int {
		return cmp.Or(cmp.Compare(len(groups[a]), len(groups[b])), strings.Compare(a, b))
	}
	for _, summary := range slices.SortedFunc(maps.Keys(groups), order) {
		fmt.Fprintf(&text, "\n%s:\n%s", api.First(groups[summary], shownNames), summary)
	}
	return text.String()
}

func resultCounts(results map[planResult]int) string {
	var parts []string
	for _, one := range []struct {
		result planResult
		text   string
	}{
		{planFailed, "failed"}, {approvalNeeded, "need approval"}, {changesUnknown, "partly unknown"}, {changes, "change"}, {nothingToDo, "nothing to do"},
	} {
		if n := results[one.result]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, one.text))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// summary describes a plan without the names and values that differ between custom
// resources.
func (out planOutput) summary() string {
	// Names of resources usually contain the name of the custom resource.
	name := regexp.MustCompile(`\b` + regexp.QuoteMeta(out.Name) + `\b`)
	anonymous := func(text string) string { return name.ReplaceAllLiteralString(text, "NAME") }
	var lines []string
	switch {
	case out.Error != "":
		lines = append(lines, anonymous(out.Error))
	case out.Revision == 0 && out.Approval != nil:
		lines = append(lines, anonymous(out.Approval.Summary))
	case out.Revision == 0:
		lines = append(lines, nextStepText(out))
	case len(out.Changes) == 0:
		lines = append(lines, "a new revision, no resource changes")
	}
	for _, reason := range out.Refused {
		lines = append(lines, "rejected: "+anonymous(reason))
	}
	if out.Approval != nil && !out.Approval.Approved {
		lines = append(lines, "approval required")
	}
	for _, c := range out.Changes {
		text := fmt.Sprintf("%s %s %s", c.Action, c.Kind, anonymous(c.Name))
		if c.PodsRestarted > 0 {
			text += ", pods restart"
		}
		if c.DataAtRisk != "" {
			text += ", data at risk"
		}
		if c.Action == apply.Change && len(c.Fields) > 0 {
			paths := make([]string, len(c.Fields))
			for i, field := range c.Fields {
				paths[i] = anonymous(field.Path)
			}
			text += ": " + strings.Join(paths, ", ")
		}
		lines = append(lines, text)
	}
	for _, hook := range out.Hooks {
		lines = append(lines, fmt.Sprintf("run %s %s", hook.Event, hook.Kind))
	}
	if len(out.Unknown) > 0 {
		lines = append(lines, "partly unknown")
	}
	return "    " + strings.Join(lines, "\n    ") + "\n"
}
