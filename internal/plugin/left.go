package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/api"
)

// leftItem is an object that stayed when its custom resource was deleted.
type leftItem struct {
	objectRef

	// LeftBy is the custom resource, as "<kind>.<group>/<namespace>/<name>".
	LeftBy  string      `json:"leftBy"`
	Created metav1.Time `json:"created"`
}

// selectLeft selects objects that no custom resource has adopted since.
const selectLeft = api.LabelLeft + "=true,!" + api.LabelOwnerUID

// listLeft lists the objects that stayed, of one kind or all kinds of the cluster.
func (s *session) listLeft(ctx context.Context, args []string, all bool) error {
	if err := s.connect(); err != nil {
		return err
	}
	if all {
		s.namespace = metav1.NamespaceAll
	}
	kinds, err := s.resourcesFor("list")
	if err != nil {
		return fmt.Errorf("discover the kinds of the cluster: %w", err)
	}
	if len(args) > 0 {
		t, err := s.kind(args[0], s.namespace)
		if err != nil {
			return err
		}
		kinds = slices.DeleteFunc(kinds, func(k metav1.APIResource) bool {
			return k.Group != t.mapping.Resource.Group || k.Name != t.mapping.Resource.Resource
		})
	}
	objects, missing := s.listAll(ctx, kinds, selectLeft)
	out := listOutput[leftItem]{Items: leftItems(objects), Missing: missing}
	return s.printWithNotes(missing, out, func() string { return leftTable(out.Items, all, time.Now()) })
}

// leftItems returns each object once: some kinds are served by two groups.
func leftItems(objects []unstructured.Unstructured) []leftItem {
	items, seen := []leftItem{}, sets.Set[types.UID]{}
	for i := range objects {
		o := &objects[i]
		if seen.Has(o.GetUID()) {
			continue
		}
		seen.Insert(o.GetUID())
		items = append(items, leftItem{refOf(o), o.GetAnnotations()[api.AnnotationLeftBy], o.GetCreationTimestamp()})
	}
	slices.SortFunc(items, func(a, b leftItem) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return items
}

func leftTable(items []leftItem, all bool, now time.Time) string {
	if len(items) == 0 {
		return "No objects of deleted custom resources found.\n"
	}
	rows := [][]string{{"NAMESPACE", "KIND", "NAME", "LEFT BY", "AGE"}}
	for _, i := range items {
		rows = append(rows, []string{cmp.Or(i.Namespace, "-"), i.Kind, i.Name, cmp.Or(i.LeftBy, "-"), duration.HumanDuration(now.Sub(i.Created.Time))})
	}
	return namespaced(rows, all) + "\nTo adopt the objects, create the custom resource again. To delete an object, use kubectl delete.\n"
}
