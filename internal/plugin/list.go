package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/chartwright/chartwright/internal/api"
)

// listOutput is the output of list and of list --left with -o json and yaml.
type listOutput[T any] struct {
	// Items are sorted by namespace, kind and name.
	Items []T `json:"items"`
	// Missing says what could not be listed.
	Missing []string `json:"missing,omitempty"`
}

// listItem is one custom resource.
type listItem struct {
	objectRef

	// Ready and Message are those of the condition Ready.
	Ready    metav1.ConditionStatus `json:"ready"`
	Revision int64                  `json:"revision,omitempty"`
	// Chart is "<name>-<version>".
	Chart   string      `json:"chart,omitempty"`
	Created metav1.Time `json:"created"`
	Message string      `json:"message,omitempty"`
}

// checkOutput is the output of check with -o json and yaml.
type checkOutput struct {
	// Total counts the custom resources, Failed and Pending those that determine the exit
	// code.
	Total   int `json:"total"`
	Failed  int `json:"failed"`
	Pending int `json:"pending"`
	// Findings are sorted by namespace, kind and name.
	Findings []finding `json:"findings"`
	// Missing says what could not be checked.
	Missing []string `json:"missing,omitempty"`
}

// finding is why a custom resource needs attention.
type finding struct {
	objectRef

	Level   level  `json:"level"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// level says how a finding affects the exit code of check.
type level string

const (
	levelFailed  level = "Failed"
	levelPending level = "Pending"
	levelInfo    level = "Info"
)

func newList(s *session) *cobra.Command {
	var all, left bool
	cmd := s.onResources(&cobra.Command{
		Use:   "list [KIND]",
		Short: "List custom resources",
		Long: `List the custom resources that Chartwright manages, by default of all kinds in the
namespace of the context. With --left, list instead the objects that stayed when their
custom resources were deleted: KIND is then the kind of the objects.

Required permissions: list on the kinds. Without KIND, kinds that you cannot list
are skipped, and a note states how many.`,
		Example: example("kubectl chartwright list", "kubectl chartwright list podset -A", "kubectl chartwright list -A -o json", "kubectl chartwright list --left -A"),
	}, &all, func(crs []unstructured.Unstructured, missing []string) error {
		out := listOutput[listItem]{Items: make([]listItem, len(crs)), Missing: missing}
		for i := range crs {
			out.Items[i] = itemOf(&crs[i])
		}
		return s.printWithNotes(missing, out, func() string { return listTable(out.Items, all, time.Now()) })
	})
	cmd.Flags().BoolVar(&left, "left", false, "objects that stayed when their custom resources were deleted")
	list := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if left {
			return s.listLeft(cmd.Context(), args, all)
		}
		return list(cmd, args)
	}
	return cmd
}

func newCheck(s *session) *cobra.Command {
	var all bool
	return s.onResources(&cobra.Command{
		Use:   "check [KIND]",
		Short: "Check that all custom resources are ready",
		Long: `Check that all custom resources are ready, and print only those that need
attention: LEVEL is Failed, Pending or Info. Held and paused custom resources have
the level Info.

Exit codes: 0 nothing failed or pending; 1 a custom resource has failed or drifted,
or the check failed; 2 nothing failed, but custom resources are pending.

Required permissions: list on the kinds. Without KIND, kinds that you cannot list
are skipped, and a note states how many.`,
		Example: example("kubectl chartwright check -A", "kubectl chartwright check podset -n shop -o json"),
	}, &all, func(crs []unstructured.Unstructured, missing []string) error {
		out := checkOutput{Total: len(crs), Findings: []finding{}, Missing: missing}
		for i := range crs {
			findings := findingsOf(&crs[i])
			has := func(l level) bool { return slices.ContainsFunc(findings, func(f finding) bool { return f.Level == l }) }
			switch {
			case has(levelFailed):
				out.Failed++
			case has(levelPending):
				out.Pending++
			}
			out.Findings = append(out.Findings, findings...)
		}
		if err := s.printWithNotes(missing, out, func() string { return out.table(all) }); err != nil {
			return err
		}
		switch {
		case out.Failed > 0:
			return fmt.Errorf("%d of %d custom resources failed", out.Failed, out.Total)
		case out.Pending > 0:
			return &pendingError{fmt.Sprintf("%d of %d custom resources pending", out.Pending, out.Total)}
		}
		return nil
	})
}

// onResources makes cmd a command on the custom resources of one kind or all kinds. all
// is the value of -A.
func (s *session) onResources(cmd *cobra.Command, all *bool, run func(crs []unstructured.Unstructured, missing []string) error) *cobra.Command {
	cmd.Flags().BoolVarP(all, "all-namespaces", "A", false, "all namespaces")
	cmd.Args, cmd.ValidArgsFunction = cobra.MaximumNArgs(1), s.completeKind
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := s.connect(); err != nil {
			return err
		}
		if *all {
			s.namespace = metav1.NamespaceAll
		}
		var crs []unstructured.Unstructured
		var missing []string
		if len(args) == 1 {
			t, err := s.kind(args[0], s.namespace)
			if err != nil {
				return err
			}
			list, err := t.client.List(cmd.Context(), metav1.ListOptions{})
			if err != nil {
				return t.need("list", "to list the custom resources").explain(err)
			}
			crs = list.Items
		} else {
			kinds, err := s.customKinds("list")
			if err != nil {
				return fmt.Errorf("discover the kinds of the cluster: %w", err)
			}
			crs, missing = s.listAll(cmd.Context(), kinds, "")
		}
		crs = slices.DeleteFunc(crs, func(cr unstructured.Unstructured) bool { return !managed(&cr) })
		slices.SortFunc(crs, func(a, b unstructured.Unstructured) int {
			return slices.Compare([]string{a.GetNamespace(), a.GetKind(), a.GetName()}, []string{b.GetNamespace(), b.GetKind(), b.GetName()})
		})
		return run(crs, missing)
	}
	return cmd
}

// listAll lists the selected objects of several kinds, and says which kinds it could not list.
func (s *session) listAll(ctx context.Context, kinds []metav1.APIResource, selector string) (all []unstructured.Unstructured, missing []string) {
	var mu sync.Mutex
	forbidden := 0
	concurrently(len(kinds), func(i int) {
		list, err := s.listKind(ctx, kinds[i], s.namespace, selector)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			all = append(all, list.Items...)
		case apierrors.IsForbidden(err):
			forbidden++
		case !unlistable(err):
			missing = append(missing, cannotList(kinds[i], err))
		}
	})
	slices.Sort(missing)
	if forbidden > 0 {
		missing = append(missing, skippedKinds(forbidden))
	}
	return all, missing
}

// listKind lists the selected objects of a kind, in a namespace if the kind is namespaced.
func (s *session) listKind(ctx context.Context, kind metav1.APIResource, namespace, selector string) (*unstructured.UnstructuredList, error) {
	if !kind.Namespaced {
		namespace = metav1.NamespaceAll
	}
	resource := schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: kind.Name}
	return s.dynamic.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
}

// unlistable reports whether a list failed because the kind no longer exists, or
// cannot be listed.
func unlistable(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

func cannotList(kind metav1.APIResource, err error) string {
	return fmt.Sprintf("cannot list %s: %s", schema.GroupResource{Group: kind.Group, Resource: kind.Name}, oneLine(err.Error()))
}

func skippedKinds(n int) string {
	return fmt.Sprintf("%d kinds were skipped because you cannot list them", n)
}

func refOf(cr *unstructured.Unstructured) objectRef {
	gvk := cr.GroupVersionKind()
	return objectRef{gvk.Group, gvk.Kind, cr.GetNamespace(), cr.GetName()}
}

func itemOf(cr *unstructured.Unstructured) listItem {
	status := shownStatus(cr)
	item := listItem{objectRef: refOf(cr), Ready: metav1.ConditionUnknown, Created: cr.GetCreationTimestamp()}
	if ready := meta.FindStatusCondition(status.Conditions, api.ConditionReady); ready != nil {
		item.Ready, item.Message = ready.Status, oneLine(ready.Message)
	}
	if status.Release != nil {
		item.Revision, item.Chart = status.Release.Revision, status.Release.Chart
	}
	return item
}

func listTable(items []listItem, all bool, now time.Time) string {
	if len(items) == 0 {
		return noneFound
	}
	rows := [][]string{{"NAMESPACE", "KIND", "NAME", "READY", "REVISION", "CHART", "AGE", "MESSAGE"}}
	for _, i := range items {
		rows = append(rows, []string{
			cmp.Or(i.Namespace, "-"), i.Kind, i.Name, string(i.Ready), strconv.FormatInt(i.Revision, 10), cmp.Or(i.Chart, "-"),
			duration.HumanDuration(now.Sub(i.Created.Time)), api.Truncate(i.Message, messageWidth),
		})
	}
	return namespaced(rows, all)
}

const noneFound = "No custom resources found.\n"

// messageWidth limits the messages in tables, in bytes.
const messageWidth = 100

// namespaced formats a table, without the column NAMESPACE unless all is set.
func namespaced(rows [][]string, all bool) string {
	for i := range rows {
		if !all {
			rows[i] = rows[i][1:]
		}
	}
	return table(rows...)
}

// findingsOf returns why a custom resource needs attention.
func findingsOf(cr *unstructured.Unstructured) (findings []finding) {
	status := shownStatus(cr)
	add := func(l level, reason, message string) {
		findings = append(findings, finding{refOf(cr), l, reason, oneLine(message)})
	}
	ready := cmp.Or(meta.FindStatusCondition(status.Conditions, api.ConditionReady), &metav1.Condition{Reason: "NotReported", Message: noStatus})
	if message := notObserved(cr, status); message != "" && ready.Reason != api.ReasonUninstalling {
		add(levelPending, "NotObserved", message)
	} else if v := settled(status); v.outcome == outcomeFailed {
		add(levelFailed, ready.Reason, ready.Message)
	} else if v.outcome == outcomeOpen && ready.Reason != api.ReasonPaused {
		add(levelPending, ready.Reason, ready.Message)
	}
	for _, c := range conditionsOf(status) {
		switch c.Type {
		case api.ConditionUpdateAvailable:
		// After a refused request for a rollback, everything is as before.
		case api.ConditionHeld, api.ConditionPaused, api.ConditionRollbackRefused:
			add(levelInfo, c.Type, c.Message)
		default:
			add(levelFailed, c.Type, c.Message)
		}
	}
	return findings
}

func (c checkOutput) table(all bool) string {
	if c.Total == 0 {
		return noneFound
	}
	summary := fmt.Sprintf("%d checked, %d failed, %d pending\n", c.Total, c.Failed, c.Pending)
	if len(c.Findings) == 0 {
		return summary
	}
	rows := [][]string{{"NAMESPACE", "KIND", "NAME", "LEVEL", "REASON", "MESSAGE"}}
	for _, f := range c.Findings {
		rows = append(rows, []string{cmp.Or(f.Namespace, "-"), f.Kind, f.Name, string(f.Level), f.Reason, api.Truncate(f.Message, messageWidth)})
	}
	return summary + "\n" + namespaced(rows, all)
}
