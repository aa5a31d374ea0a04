package soak

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/api"
)

// watchRecords checks at all times that the operator never has two concurrent
// actions on a release, visible as two pending revisions that it wrote. It also
// counts Jobs and revisions for fewJobs.
func (w *world) watchRecords() {
	w.t.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(w.Typed, 0*time.Second, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = "owner=helm," + api.LabelOperator + "=" + w.Namespace
	}))
	var mu sync.Mutex
	pending := map[string]map[string]bool{}
	// revisions and jobs contain all UIDs that ever existed.
	revisions, jobs := map[string]map[types.UID]bool{}, map[string]map[types.UID]bool{}
	see := func(object any, there bool) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		record, ok := object.(*corev1.Secret)
		if !ok || record.Labels[copied] != "" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		release := record.Namespace + "/" + record.Labels["name"]
		if pending[release] == nil {
			pending[release], revisions[release] = map[string]bool{}, map[types.UID]bool{}
		}
		revisions[release][record.UID] = true
		delete(pending[release], record.Name)
		if there && api.Pending(record.Labels["status"]) && record.Labels[api.LabelRevision] == record.Labels["version"] {
			pending[release][record.Name] = true
		}
		if len(pending[release]) > 1 {
			w.violatef("release %s has two pending revisions of the operator's own: %v", release, pending[release])
		}
	}
	// The helm command copies the operator's labels to its records, so its
	// revisions, which also create Jobs, are counted.
	job := func(object any) {
		created, ok := object.(*batchv1.Job)
		if !ok || created.Spec.TTLSecondsAfterFinished == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		name, _, _ := strings.Cut(created.Name, "-")
		release := created.Namespace + "/" + name
		if jobs[release] == nil {
			jobs[release] = map[types.UID]bool{}
		}
		jobs[release][created.UID] = true
	}
	// A Job can be observed before the record of its revision, because they are
	// two watches.
	w.fewJobs = func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		for release, created := range jobs {
			if len(created) > len(revisions[release]) {
				return fmt.Errorf("release %s has created %d Jobs in %d revisions", release, len(created), len(revisions[release]))
			}
		}
		return nil
	}
	all := informers.NewSharedInformerFactoryWithOptions(w.Typed, 0*time.Second, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = api.LabelOperator + "=" + w.Namespace
	}))
	_, errRecords := factory.Core().V1().Secrets().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { see(o, true) },
		UpdateFunc: func(_, o any) { see(o, true) },
		DeleteFunc: func(o any) { see(o, false) },
	})
	_, errJobs := all.Batch().V1().Jobs().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: job})
	if err := errors.Join(errRecords, errJobs); err != nil {
		w.t.Fatal(err)
	}
	for _, f := range []informers.SharedInformerFactory{factory, all} {
		f.Start(w.t.Context().Done())
		f.WaitForCacheSync(w.t.Context().Done())
	}
}
