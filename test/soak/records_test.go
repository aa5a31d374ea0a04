package soak

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/api"
)

// watchRecords sees to it, at all times, that the operator never has two
// actions on a release under way: two pending revisions that it wrote.
func (w *world) watchRecords() {
	w.t.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(w.Typed, 0*time.Second, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = "owner=helm," + api.LabelOperator + "=" + w.Namespace
	}))
	var mu sync.Mutex
	pending := map[string]map[string]bool{}
	see := func(object any, there bool) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		record, ok := object.(*corev1.Secret)
		if !ok {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		release := record.Namespace + "/" + record.Labels["name"]
		if pending[release] == nil {
			pending[release] = map[string]bool{}
		}
		delete(pending[release], record.Name)
		if there && api.Pending(record.Labels["status"]) && record.Labels[api.LabelRevision] == record.Labels["version"] {
			pending[release][record.Name] = true
		}
		if len(pending[release]) > 1 {
			w.violatef("release %s has two pending revisions of the operator's own: %v", release, pending[release])
		}
	}
	informer := factory.Core().V1().Secrets().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { see(o, true) },
		UpdateFunc: func(_, o any) { see(o, true) },
		DeleteFunc: func(o any) { see(o, false) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	factory.Start(w.t.Context().Done())
	factory.WaitForCacheSync(w.t.Context().Done())
}
