package e2e

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pieces returns the data of a release's ConfigMaps.
func (k killed) pieces(ctx context.Context, release string) (string, error) {
	live, err := k.Typed.CoreV1().ConfigMaps(k.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	var found []string
	for i := range live.Items {
		if piece, ok := strings.CutPrefix(live.Items[i].Name, release+"-"); ok {
			found = append(found, piece+"="+live.Items[i].Data["text"])
		}
	}
	// In the order of their names in the chart: first, second, third.
	slices.SortFunc(found, func(a, b string) int { return order(a) - order(b) })
	return strings.Join(found, ", "), nil
}

func order(piece string) int {
	return slices.IndexFunc([]string{"one", "two", "three"}, func(name string) bool { return strings.HasPrefix(piece, name) })
}

// found describes the state of a release, for the table and for the final
// check.
func (k killed) found(release string) string {
	k.T().Helper()
	var found []string
	if revisions := k.Revisions(release); revisions != "" {
		found = append(found, revisions)
	}
	pieces, err := k.pieces(k.T().Context(), release)
	if err != nil {
		k.T().Fatal(err)
	}
	if pieces != "" {
		found = append(found, pieces)
	}
	secrets, err := k.Typed.CoreV1().Secrets(k.Namespace).List(k.T().Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + release + "-secret"})
	if err != nil {
		k.T().Fatal(err)
	}
	if len(secrets.Items) > 0 {
		found = append(found, "the Secret")
	}
	jobs, err := k.Typed.BatchV1().Jobs(k.Namespace).List(k.T().Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + release + "-before"})
	if err != nil {
		k.T().Fatal(err)
	}
	if len(jobs.Items) > 0 {
		found = append(found, "the hook's Job")
	}
	if len(found) == 0 {
		return "nothing"
	}
	return strings.Join(found, "; ")
}

// decided matches the operator's log message about a decision.
var decided = regexp.MustCompile(`"msg":"decided".*"name":"([^"]*)".*"step":"(\w+)"`)

// steps returns the steps for a custom resource, from the log, in order.
func steps(log, name string) string {
	var found []string
	for _, line := range decided.FindAllStringSubmatch(log, -1) {
		if line[1] == name && line[2] != "Wait" {
			found = append(found, line[2])
		}
	}
	if len(found) == 0 {
		return "nothing but its report"
	}
	return strings.Join(slices.Compact(found), ", ")
}

// killTable contains what an operator finds after a kill, and what it does: one
// row for all consecutive points with the same outcome.
type killTable struct {
	mu     sync.Mutex
	order  []string
	points map[string][]string
}

// add adds a point to the table. Names of this release are replaced by general
// names.
func (k *killTable) add(name, point, found, does string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	named := strings.NewReplacer("sh.helm.release.v1."+name+".", "", name, "web")
	row := fmt.Sprintf("%s | %s |", found, does)
	if k.points == nil {
		k.points = map[string][]string{}
	}
	if _, known := k.points[row]; !known {
		k.order = append(k.order, row)
	}
	if point = named.Replace(point); !slices.Contains(k.points[row], point) {
		k.points[row] = append(k.points[row], point)
	}
}

// String returns the table as in docs/dev/design.md.
func (k *killTable) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	rows := []string{"| killed | the next process finds | and does |", "|---|---|---|"}
	for _, row := range k.order {
		rows = append(rows, fmt.Sprintf("| %s | %s", strings.Join(k.points[row], "; "), row))
	}
	return strings.Join(rows, "\n")
}
