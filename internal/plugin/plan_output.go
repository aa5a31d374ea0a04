package plugin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/guard"
	"github.com/chartwright/chartwright/internal/planner"
)

// planOutput is the output of plan with -o json and yaml, for one custom resource.
type planOutput struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Result is NothingToDo, Changes, ApprovalRequired, Unknown or Failed.
	Result planResult `json:"result"`
	// State and NextStep are those of the operator, as in its log.
	State    string `json:"state,omitempty"`
	NextStep string `json:"nextStep,omitempty"`
	Paused   bool   `json:"paused,omitempty"`

	Release          string `json:"release,omitempty"`
	ReleaseNamespace string `json:"releaseNamespace,omitempty"`
	// Chart is "<name>-<version>". NewChart reports that it is not the deployed chart.
	Chart    string `json:"chart,omitempty"`
	NewChart bool   `json:"newChart,omitempty"`
	// Revision is the number of the new revision.
	Revision int `json:"revision,omitempty"`

	Changes       []plannedChange `json:"changes"`
	PodsRestarted int64           `json:"podsRestarted"`
	Hooks         []plannedHook   `json:"hooks,omitempty"`
	// Approval is the approval that the upgrade needs.
	Approval *plannedApproval `json:"approval,omitempty"`
	// Refused are the reasons of the API server to reject objects: the upgrade would not
	// start.
	Refused  []string `json:"refused,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Unknown are the parts of the plan that may be wrong, because a permission is missing.
	Unknown []string `json:"unknown,omitempty"`
	// Error is why there is no plan.
	Error string `json:"error,omitempty"`
}

// plannedHook is a hook that an upgrade runs.
type plannedHook struct {
	objectRef

	Event string `json:"event"`
}

// plannedApproval is an approval that an upgrade needs.
type plannedApproval struct {
	Summary string `json:"summary"`
	// Digest is empty if the values are partly unknown: the operator reports it.
	Digest   string `json:"digest,omitempty"`
	Approved bool   `json:"approved,omitempty"`
}

// newPlanOutput returns the output for one custom resource.
func newPlanOutput(kind string, cr *unstructured.Unstructured, chart string, p *planner.Planned) planOutput {
	out := planOutput{
		Kind: kind, Namespace: cr.GetNamespace(), Name: cr.GetName(), Result: nothingToDo,
		State: string(p.State), NextStep: string(p.Step), Paused: p.Paused,
		Release: p.Release.Name, ReleaseNamespace: p.Release.Namespace, Chart: chart, NewChart: p.BaseChart != p.Chart, Changes: []plannedChange{},
	}
	for _, unknown := range p.Unknown {
		out.Unknown = append(out.Unknown, p.Secrets.Redact(unknown))
	}
	action := p.Action
	if action == nil {
		if len(out.Unknown) > 0 {
			out.Result = changesUnknown
		}
		return out
	}
	out.Revision = action.Revision
	out.Changes = changesOf(action.Writes, p.Secrets)
	for _, hook := range action.Hooks {
		out.Hooks = append(out.Hooks, plannedHook{objectRef(hook.Key), hook.Event})
	}
	for _, text := range action.Refused {
		out.Refused = append(out.Refused, p.Secrets.Redact(text))
	}
	for _, text := range action.Warnings {
		out.Warnings = append(out.Warnings, p.Secrets.Redact(text))
	}
	if a := action.Approval; a != nil {
		out.Approval = &plannedApproval{p.Secrets.Redact(a.Summary()), a.Digest(), action.Approved}
		if p.AssumedValues {
			out.Approval.Digest = ""
		}
		out.markRisks(a.Operations)
	}
	for _, change := range out.Changes {
		out.PodsRestarted += change.PodsRestarted
	}
	switch {
	case len(out.Refused) > 0:
		out.Result = planFailed
	case out.Approval != nil && !out.Approval.Approved:
		out.Result = approvalNeeded
	case len(out.Unknown) > 0:
		out.Result = changesUnknown
	default:
		out.Result = changes
	}
	return out
}

// markRisks adds to the changes why they need an approval.
func (out *planOutput) markRisks(operations []guard.Operation) {
	for _, operation := range operations {
		at := slices.IndexFunc(out.Changes, func(c plannedChange) bool { return apply.Key(c.objectRef) == operation.Key })
		if at >= 0 {
			out.Changes[at].DataAtRisk = operation.Why
		}
	}
}

// plan formats a plan as text.
func (p painter) plan(target string, out planOutput) string {
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	chart := out.Chart
	if out.NewChart && out.Revision > 1 {
		chart += ", not the deployed chart"
	}
	switch {
	case out.Revision == 0 && out.Approval != nil:
		line("%s: %s", target, out.Approval.Summary)
	case out.Revision == 0:
		line("%s: %s (%s)", target, nextStepText(out), chart)
	default:
		line("%s: revision %d of release %s (%s)", target, out.Revision, out.Release, chart)
	}
	for _, change := range out.Changes {
		p.writeChange(line, change, out.ReleaseNamespace)
	}
	for _, hook := range out.Hooks {
		line("run %s %s", hook.Event, hook.short(out.ReleaseNamespace))
	}
	if out.Revision > 0 {
		line("%s", totals(out))
	}
	for _, reason := range out.Refused {
		line("%s: %s", p.paint("The API server would reject the change", red), reason)
	}
	for _, warning := range out.Warnings {
		line("Warning: %s", warning)
	}
	for _, unknown := range out.Unknown {
		line("Unknown: %s", unknown)
	}
	if a := out.Approval; a != nil {
		switch {
		case a.Digest == "":
			line("%s: after the change, the status of the custom resource names the plan.", p.paint("Approval required", yellow))
		case a.Approved:
			line("Plan %s is approved.", a.Digest)
		default:
			line("%s: after the change, run: %s approve %s --plan %s", p.paint("Approval required", yellow), commandLine, join(" -n ", target, out.Namespace), a.Digest)
		}
	}
	if out.Paused {
		line("The custom resource is paused: nothing happens until you resume it.")
	}
	return text.String()
}

// nextStepText describes a plan without an action.
func nextStepText(out planOutput) string {
	switch out.State {
	case "InSync", "Due", "Unrecorded", "Unsigned", "Unready", "Untested":
		return "nothing to do"
	case "Held":
		return "nothing to do: an earlier revision is held"
	}
	return fmt.Sprintf("no upgrade: state %s, next step %s", out.State, out.NextStep)
}

// maxValue is the number of characters of a value in the text.
const maxValue = 60

func (p painter) writeChange(line func(string, ...any), c plannedChange, usual string) {
	colors := map[apply.Verb]paint{apply.Create: green, apply.Change: yellow, apply.Recreate: red, apply.Remove: red}
	notes := ""
	if c.PodsRestarted > 0 {
		notes = fmt.Sprintf(", %s", api.Counted(c.PodsRestarted, "pod restarts", "pods restart"))
	}
	if c.DataAtRisk != "" {
		notes += ", " + p.paint("data at risk", red) + ": " + c.DataAtRisk
	}
	line("%s %s%s", p.paint(string(c.Action), colors[c.Action]), c.short(usual), notes)
	for _, field := range c.Fields {
		line("    %s: %s -> %s", field.Path, shown(field.Before), shown(field.After))
	}
}

// shown returns a value on one line.
func shown(value any) string {
	if value == nil {
		return "(none)"
	}
	text, isText := value.(string)
	if !isText {
		data, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value)
		}
		text = string(data)
	}
	text = oneLine(text)
	if runes := []rune(text); len(runes) > maxValue {
		text = string(runes[:maxValue-1]) + "…"
	}
	if isText && text == "" {
		return `""`
	}
	return text
}

// totals sums up a plan.
func totals(out planOutput) string {
	counts := map[apply.Verb]int64{}
	for _, change := range out.Changes {
		counts[change.Action]++
	}
	var parts []string
	for _, verb := range []apply.Verb{apply.Create, apply.Change, apply.Recreate, apply.Remove, apply.Leave} {
		if counts[verb] > 0 {
			parts = append(parts, fmt.Sprintf("%d to %s", counts[verb], verb))
		}
	}
	if len(parts) == 0 {
		parts = []string{"No resource changes"}
	}
	text := strings.Join(parts, ", ") + "."
	if out.PodsRestarted > 0 {
		text += fmt.Sprintf(" %s.", api.Counted(out.PodsRestarted, "pod restarts", "pods restart"))
	}
	return text
}
