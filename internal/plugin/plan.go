package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/planner"
)

// planFlags are the flags of plan. file is a custom resource or its spec.
type planFlags struct {
	planner.Charts

	file string
}

// planResult sums up a plan. Each result has an exit code.
type planResult string

const (
	nothingToDo    planResult = "NothingToDo"
	changes        planResult = "Changes"
	approvalNeeded planResult = "ApprovalRequired"
	changesUnknown planResult = "Unknown"
	planFailed     planResult = "Failed"
)

// planExits are the exit codes of results.
var planExits = map[planResult]exitError{planFailed: exitFailed, changes: 2, approvalNeeded: 3, changesUnknown: 4}

// exit returns the error with the exit code of a result, nil for nothingToDo.
func (r planResult) exit() error {
	if code, ok := planExits[r]; ok {
		return code
	}
	return nil
}

// exitError is an exit code of a command that has printed its result.
type exitError int

// Error returns the code.
func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func newPlan(s *session) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan KIND/NAME | KIND",
		Short: "Show what the next upgrade would do",
		Long: `Show what the operator would do about a custom resource, or about all custom
resources of a kind: which resources an upgrade would create, change, delete or
recreate, which pods would restart, which hooks would run, and which data would be
at risk.

With -f, plan an edited custom resource. With --chart, plan an upgrade to another
chart. By default, the chart is that of the ChartKind or else of the watches file.

The command runs the code of the operator with your permissions. It changes nothing:
it sends only reads and dry runs. Values of Secrets are redacted.

Required permissions: those of the operator for the resources of the release, and
list on Secrets. If you may not patch a resource, or not read an object in valuesFrom,
the plan reports what is unknown.

Exit codes: 0 nothing to do; 1 failed, or the change would be rejected; 2 changes;
3 changes that need approval; 4 parts of the plan are unknown.`,
		Example: example("kubectl chartwright plan podset/web -f web.yaml", "kubectl chartwright plan podset/web --chart ./charts/podset", "kubectl chartwright plan podset --chart ./charts/podset -o json"),
		Args:    cobra.RangeArgs(1, 2),
	}
	cmd.ValidArgsFunction = s.completeTarget
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := s.connect(); err != nil {
			return err
		}
		if len(args) == 2 || strings.Contains(args[0], "/") {
			t, err := s.target(args)
			if err != nil {
				return err
			}
			return s.planOne(cmd.Context(), t, f)
		}
		if f.file != "" {
			return errors.New("-f requires KIND/NAME")
		}
		t, err := s.kindAnywhere(args[0])
		if err != nil {
			return err
		}
		return s.planKind(cmd.Context(), t, f)
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "filename", "f", "", "file with the edited custom resource or spec, - for stdin (default: the spec in the cluster)")
	flags.StringVar(&f.Reference, "chart", "", "folder, .tgz or oci:// reference of a chart (default: that of the ChartKind or watches file)")
	flags.StringVar(&f.WatchesFile, "watches-file", "", "watches file (default: ./watches.yaml, else the embedded one)")
	flags.BoolVar(&f.PlainHTTP, "plain-http", false, "use HTTP for an OCI registry")
	return cmd
}

// planOne plans one custom resource.
func (s *session) planOne(ctx context.Context, t target, f planFlags) error {
	gk := t.mapping.GroupVersionKind.GroupKind()
	cr, err := s.planned(ctx, t, f.file)
	if err != nil {
		return err
	}
	kind, err := planner.FindKind(ctx, s.dynamic, gk, f.Charts)
	if err != nil {
		return err
	}
	p, err := planner.New(ctx, s.config, s.mapper, kind, planner.Scope{One: cr})
	if err != nil {
		return s.explainRecords(t, cr, err)
	}
	planned, err := p.Plan(ctx, cr)
	if err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	out := newPlanOutput(t.resource().String(), cr, kind.Chart.Name()+"-"+kind.Chart.Version(), planned)
	if err := s.print(out, func() string { return s.painter().plan(t.String(), out) }); err != nil {
		return err
	}
	return out.Result.exit()
}

// explainRecords names the permission that the user lacks to list release records.
func (s *session) explainRecords(t target, cr *unstructured.Unstructured, err error) error {
	if !errors.Is(err, planner.ErrRecords) || !apierrors.IsForbidden(err) {
		return err
	}
	namespace := t.namespace
	if stored := statusOf(cr).Release; stored != nil {
		namespace = stored.Namespace
	}
	return permission{verb: "list", resource: secretResource.GroupResource(), namespace: namespace, purpose: "to read release records"}.explain(err)
}
