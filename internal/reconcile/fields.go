package reconcile

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/inventory"
)

// Observed is what a kind's own status fields speak of beside the release, see
// Store in package observed.
type Observed interface {
	// Select returns the objects of each selection, by its name, or why they
	// cannot be told. It makes no request.
	Select(user types.UID, selections []catalog.Selection) (objects map[string][]any, missing map[string]string)
	// Forget ends what a custom resource looks at.
	Forget(user types.UID)
}

// settle is how long changes of observed objects are gathered for one pass: a
// rollout is many, one after another.
const settle = 100 * time.Millisecond

// ObservedChanged calls for a pass over the custom resource that looks at an
// object that changed, if it is of this kind.
func (r *Reconciler) ObservedChanged(user types.UID) {
	if key, ok := r.keys.get(user); ok {
		r.Wake(key, settle)
	}
}

func (r *Reconciler) forgetObserved(user types.UID) {
	if len(r.Kind.Observes) > 0 {
		r.Observed.Forget(user)
	}
}

// fields are the kind's own, as a pass computed them.
type fields struct {
	kindstatus.Result
	// refused: the API server does not take them.
	refused bool
}

// refuse gives the fields up, so that the rest of the status can be written, and
// returns false where there are none.
func (f *fields) refuse() bool {
	if len(f.Values) == 0 {
		return false
	}
	names := strings.Join(slices.Sorted(maps.Keys(f.Values)), ", status.")
	f.refused = true
	f.Result = kindstatus.Result{Failures: []kindstatus.Error{{
		Field: names, Message: "the definition of the kind in the cluster refuses the type: install the one that chartwright crd prints",
	}}}
	return true
}

// computeFields computes the kind's own status fields, from memory.
func (r *Reconciler) computeFields(ctx context.Context, v *view) {
	if r.Kind.Fields == nil || v.fields.refused {
		return
	}
	in := kindstatus.Input{Release: newestRelease(v), Resources: r.resourcesOf(v), Redact: v.secrets.Redact}
	if v.values != nil || v.facts != nil {
		in.Values = func() map[string]any {
			// Values that are not those that were observed are not reported.
			all, _ := r.valuesOf(ctx, v)
			return values.Coalesce(r.Kind.Defaults, all)
		}
	}
	in.Observed, in.Unobserved = r.selected(v)
	v.fields.Result = r.Kind.Fields.Evaluate(in)
}

// selected returns the objects of each entry of observe.
func (r *Reconciler) selected(v *view) (objects map[string][]any, missing map[string]string) {
	if len(r.Kind.Observes) == 0 {
		return nil, nil
	}
	wrong := map[string]string{}
	selections := make([]catalog.Selection, 0, len(r.Kind.Observes))
	for _, o := range r.Kind.Observes {
		selection, err := evaluate(r, v, "observe/"+o.Name+"/"+v.release.String(), func(object map[string]any) (catalog.Selection, error) {
			return o.Selection(object, v.release)
		})
		if err != nil {
			wrong[o.Name] = err.Error()
			continue
		}
		selections = append(selections, selection)
	}
	objects, missing = r.Observed.Select(v.cr.GetUID(), selections)
	maps.Copy(missing, wrong)
	return objects, missing
}

func newestRelease(v *view) kindstatus.Release {
	if len(v.history) == 0 {
		return kindstatus.Release{Name: v.release.Name, Namespace: v.release.Namespace}
	}
	s := releaseStatus(v.history[0])
	return kindstatus.Release{
		Name: s.Name, Namespace: s.Namespace, Revision: s.Revision, Status: s.Status,
		Chart: s.Chart, ChartVersion: s.ChartVersion, AppVersion: s.AppVersion,
	}
}

// resourcesOf returns the objects of the release, also those that are gone and
// should not be, in an order that lasts.
func (r *Reconciler) resourcesOf(v *view) []kindstatus.Resource {
	found := map[apply.Key]kindstatus.Resource{}
	add := func(key apply.Key, health inventory.Health) {
		found[key] = kindstatus.Resource{
			Group: key.Group, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name,
			Ready: health.Ready, Reason: health.Reason, Message: health.Message,
		}
	}
	for _, o := range r.Inventory.OwnedBy(v.cr.GetUID()) {
		add(o.Key, inventory.Health{Ready: true})
	}
	summary := r.Inventory.Health(v.cr.GetUID(), v.observation.Now)
	for _, o := range slices.Concat(summary.Assumed, summary.Unready) {
		add(o.Key, o.Health)
	}
	keys := slices.SortedFunc(maps.Keys(found), func(a, b apply.Key) int {
		return cmp.Or(cmp.Compare(a.String(), b.String()), cmp.Compare(a.Group, b.Group))
	})
	resources := make([]kindstatus.Resource, len(keys))
	for i, key := range keys {
		resources[i] = found[key]
	}
	return resources
}

// failure says which fields could not be computed, and why.
func (f *fields) failure() string {
	said := make([]string, len(f.Failures))
	for i, failure := range f.Failures {
		said[i] = "status." + failure.Error()
	}
	return cut(strings.Join(said, "; "))
}

// addTo adds the fields to the patch of a status, as far as they differ from what
// stands there.
func (f *fields) addTo(patch map[string]any, stands any) map[string]any {
	if len(f.Values) == 0 {
		return patch
	}
	before := statusFields(stands)
	for name, value := range f.Values {
		was, is := before[name]
		if value == nil && !is || apiequality.Semantic.DeepEqual(was, value) {
			continue
		}
		if patch == nil {
			patch = map[string]any{}
		}
		patch[name] = replace(was, value)
	}
	return patch
}

// replace makes a value that a merge patch puts in place of another, not beside
// it, however deep it is: keys that go are set to null.
func replace(before, after any) any {
	old, wasMap := before.(map[string]any)
	fresh, isMap := after.(map[string]any)
	if !wasMap || !isMap {
		return after
	}
	merged := make(map[string]any, len(fresh))
	for key, value := range fresh {
		merged[key] = replace(old[key], value)
	}
	for key := range old {
		if _, stays := fresh[key]; !stays {
			merged[key] = nil
		}
	}
	return merged
}
