package e2e

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// moment is the time at which a release's upgrade began, or its Deployment was
// ready again.
type moment struct {
	version int
	release string
	begins  bool
}

// watchRollout watches, from now on, the second revisions of releases, and the
// Deployments of the same names. The returned function returns the largest
// number of concurrent upgrades and their releases, except some. The order is
// exact, because it is that of the API server's resource versions.
func watchRollout(env *harness.Env) func(except ...string) (most int, who []string) {
	env.T().Helper()
	var mu sync.Mutex
	var moments []moment
	note := func(object metav1.Object, release string, begins bool) {
		version, err := strconv.Atoi(object.GetResourceVersion())
		if err != nil {
			env.T().Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		moments = append(moments, moment{version, release, begins})
	}
	follow := func(like *unstructured.Unstructured, options metav1.ListOptions, see func(watch.EventType, *unstructured.Unstructured)) {
		_, changes := env.Follow(env.At(like), options)
		env.T().Cleanup(changes.Stop)
		go func() {
			for event := range changes.ResultChan() {
				if object, ok := event.Object.(*unstructured.Unstructured); ok {
					see(event.Type, object)
				}
			}
		}()
	}
	follow(harness.Object("v1", "Secret", "any"), metav1.ListOptions{LabelSelector: "owner=helm,version=2"}, func(event watch.EventType, secret *unstructured.Unstructured) {
		if event == watch.Added {
			note(secret, secret.GetLabels()["name"], true)
		}
	})
	follow(harness.Object("apps/v1", "Deployment", "any"), metav1.ListOptions{}, func(_ watch.EventType, object *unstructured.Unstructured) {
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d); err == nil && d.Spec.Template.Annotations["example.com/chart"] == "later" && available(&d) {
			note(&d, d.Name, false)
		}
	})
	return func(except ...string) (most int, who []string) {
		mu.Lock()
		defer mu.Unlock()
		slices.SortFunc(moments, func(a, b moment) int { return cmp.Compare(a.version, b.version) })
		under, through := map[string]bool{}, map[string]bool{}
		for _, m := range moments {
			switch {
			case slices.Contains(except, m.release), m.begins && through[m.release]:
				// An upgrade that was interrupted after all objects were ready
				// is stored again and changes nothing.
			case m.begins:
				under[m.release] = true
			default:
				delete(under, m.release)
				through[m.release] = true
			}
			if len(under) > most {
				most, who = len(under), slices.Sorted(maps.Keys(under))
			}
		}
		return most, who
	}
}

// available reports whether all replicas of a Deployment are updated and
// available.
func available(d *appsv1.Deployment) bool {
	s := d.Status
	return s.ObservedGeneration == d.Generation && s.Replicas == *d.Spec.Replicas && s.UpdatedReplicas == s.Replicas && s.AvailableReplicas == s.Replicas
}
