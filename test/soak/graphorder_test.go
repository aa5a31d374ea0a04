package soak

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

// order records every change of the custom resources, release records and Deployments of
// graphs, in the order of their resourceVersions, which etcd assigns to all kinds.
type order struct {
	g *graphs

	mu sync.Mutex
	// crs are the versions of each custom resource, and records and deployments the
	// lifetimes of each release's, by namespace and name. A name is unique in its graph.
	crs                  map[string][]version
	records, deployments map[string][]*life
}

// version is a version of a custom resource.
type version struct {
	rv         uint64
	at         time.Time
	generation int64
	// edit is the number of its spec.
	edit string
	// ready: its status is up to date and Ready.
	ready bool
	// gone: it is deleted, or being deleted.
	gone, ignoresDependents bool
	// needs are the custom resources that it depends on.
	needs []string
}

// life is the lifetime of an object. end is the start of its deletion, 0 for none.
type life struct {
	uid        string
	begin, end uint64
	at         time.Time
	// edit and chart are those that a release record deploys.
	edit  string
	chart int
}

// maxLag is how long after a change an operator may still act on the state before.
const maxLag = 15 * time.Second

func watchOrder(g *graphs) *order {
	o := &order{g: g, crs: map[string][]version{}, records: map[string][]*life{}, deployments: map[string][]*life{}}
	for _, kind := range g.kinds {
		o.watch(kind.GroupVersion().WithResource(strings.Split(kind.Resource(), ".")[0]), "", o.customResource)
	}
	o.watch(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, release.LabelOwner+"="+release.OwnerHelm, o.life(o.records, func(object *unstructured.Unstructured) string {
		return object.GetLabels()[release.LabelName]
	}))
	o.watch(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "", o.life(o.deployments, (*unstructured.Unstructured).GetName))
	return o
}

// watch passes all objects of a resource in the graphs to a function, and all changes until
// the end of the test.
func (o *order) watch(resource schema.GroupVersionResource, selector string, changed func(key string, object *unstructured.Unstructured, deleted bool)) {
	o.g.t.Helper()
	objects, changes := o.g.Follow(o.g.Dynamic.Resource(resource), metav1.ListOptions{LabelSelector: selector})
	handle := func(object *unstructured.Unstructured, deleted bool) {
		if !strings.HasPrefix(object.GetNamespace(), o.g.Namespace+"-graph-") {
			return
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		changed(object.GetNamespace()+"/"+object.GetName(), object, deleted)
	}
	for i := range objects {
		handle(&objects[i], false)
	}
	go func() {
		for event := range changes.ResultChan() {
			if object, ok := event.Object.(*unstructured.Unstructured); ok {
				handle(object, event.Type == watch.Deleted)
			}
		}
	}()
}

func number(resourceVersion string) uint64 {
	n, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// stateOf returns a version of a custom resource.
func stateOf(object *unstructured.Unstructured) version {
	v := version{
		rv: number(object.GetResourceVersion()), at: time.Now(), generation: object.GetGeneration(), gone: object.GetDeletionTimestamp() != nil,
		ignoresDependents: object.GetAnnotations()[api.AnnotationDeletionOrder] != "",
	}
	for item := range strings.SplitSeq(object.GetAnnotations()[api.AnnotationDependsOn], ",") {
		if _, name, found := strings.Cut(item, "/"); found {
			v.needs = append(v.needs, object.GetNamespace()+"/"+name)
		}
	}
	v.edit, _, _ = unstructured.NestedString(object.Object, "spec", "edit")
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == api.ConditionReady {
			v.ready = c["status"] == "True" && c["observedGeneration"] == v.generation
		}
	}
	return v
}

func (o *order) customResource(key string, object *unstructured.Unstructured, deleted bool) {
	v := stateOf(object)
	v.gone = v.gone || deleted
	o.crs[key] = append(o.crs[key], v)
}

// life returns a function that records the lifetimes of objects in lives, by the name of
// their release.
func (o *order) life(lives map[string][]*life, releaseOf func(*unstructured.Unstructured) string) func(string, *unstructured.Unstructured, bool) {
	return func(_ string, object *unstructured.Unstructured, deleted bool) {
		key, rv := object.GetNamespace()+"/"+releaseOf(object), number(object.GetResourceVersion())
		i := slices.IndexFunc(lives[key], func(l *life) bool { return l.uid == string(object.GetUID()) })
		if i < 0 {
			i = len(lives[key])
			l := &life{uid: string(object.GetUID()), begin: rv, at: time.Now()}
			if object.GetKind() == "Secret" {
				l.edit, l.chart = deployedBy(object)
			}
			lives[key] = append(lives[key], l)
		}
		if l := lives[key][i]; l.end == 0 && (deleted || object.GetDeletionTimestamp() != nil) {
			l.end = rv
		}
	}
}

// deployedBy returns the number of the spec and the version of the chart that a release
// record deploys.
func deployedBy(object *unstructured.Unstructured) (edit string, version int) {
	var secret corev1.Secret
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &secret); err != nil {
		panic(err)
	}
	content, err := release.Decode(&secret)
	if err != nil {
		panic(err)
	}
	edit, _ = content.Config["edit"].(string)
	// Chart 0.N.0 is version N.
	version, err = strconv.Atoi(strings.Split(content.Chart.Metadata.Version, ".")[1])
	if err != nil {
		panic(err)
	}
	return edit, version
}

// written returns the number of release records that were created.
func (o *order) written() (count int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, lives := range o.records {
		count += len(lives)
	}
	return count
}

// deployed returns the version of a custom resource that a record deploys, nil if there is
// none. Later versions may exist when the record is written.
func (o *order) deployed(key string, record *life) *version {
	versions := o.crs[key]
	for last := before(versions, record.begin); last != nil; last = before(versions, last.rv) {
		if last.edit == record.edit {
			return last
		}
	}
	return nil
}

// before returns the last version before a resourceVersion, nil if there is none.
func before(versions []version, rv uint64) *version {
	for i := len(versions) - 1; i >= 0; i-- {
		if versions[i].rv < rv {
			return &versions[i]
		}
	}
	return nil
}

// check fails if a release was changed before those that it depends on were ready, or
// deleted while others depended on it.
func (o *order) check(t *testing.T, what string) {
	t.Helper()
	o.catchUp()
	o.mu.Lock()
	defer o.mu.Unlock()
	changes, deletions := 0, 0
	for key, lives := range o.records {
		for _, record := range lives {
			x := o.deployed(key, record)
			if x == nil {
				t.Errorf("%s: the record %d of %s deploys no version of its custom resource", what, record.begin, key)
				continue
			}
			for _, need := range x.needs {
				changes++
				if why := o.unordered(key, need, x, record); why != "" {
					t.Errorf("%s: the record %d of %s, which depends on %s: %s", what, record.begin, key, need, why)
				}
			}
		}
	}
	for key, lives := range o.deployments {
		for _, deployment := range lives {
			if deployment.end == 0 {
				continue
			}
			deletions++
			for user := range o.crs {
				if why := o.inUse(key, user, deployment.end); why != "" {
					t.Errorf("%s: the objects of %s are deleted at %d before the release %s: %s", what, key, deployment.end, user, why)
				}
			}
		}
	}
	t.Logf("%s: %d changes of releases in order, %d deletions", what, changes, deletions)
	if changes == 0 {
		t.Errorf("%s: no release depends on another: the test tests nothing", what)
	}
}

// unordered returns why a release record was created too early for a version of its custom
// resource, "" if it was not.
func (o *order) unordered(key, need string, x *version, record *life) string {
	versions := o.crs[need]
	last := before(versions, record.begin)
	switch {
	case last == nil:
		return "it does not exist"
	case !last.ready || last.gone:
		if since := o.unreadySince(versions, record.begin); record.at.Sub(since) > maxLag {
			return fmt.Sprintf("it is not ready for %s", record.at.Sub(since))
		}
	}
	// The last edit of the custom resource, which later edits of the other need not precede.
	edited := record.begin
	for _, v := range o.crs[key] {
		if v.generation == x.generation && v.rv < edited {
			edited = v.rv
		}
	}
	wanted := before(versions, edited)
	ready := slices.ContainsFunc(versions, func(v version) bool {
		return v.rv < record.begin && v.ready && (wanted == nil || v.generation >= wanted.generation || v.rv > wanted.rv)
	})
	if !ready {
		return "it was never ready since its last edit before that of the dependent"
	}
	if at := slices.IndexFunc(o.records[need], func(l *life) bool { return l.begin < record.begin && l.chart >= record.chart }); at < 0 {
		return fmt.Sprintf("it does not have version %d of the chart", record.chart)
	}
	return ""
}

// unreadySince returns when a custom resource became not ready for the last time before a
// resourceVersion.
func (o *order) unreadySince(versions []version, rv uint64) time.Time {
	since := time.Time{}
	for _, v := range versions {
		if v.rv >= rv {
			break
		}
		if v.ready && !v.gone {
			since = time.Time{}
		} else if since.IsZero() {
			since = v.at
		}
	}
	return since
}

// inUse returns why the objects of a release must not be deleted at a resourceVersion,
// because another release depends on it; "" if they may.
func (o *order) inUse(key, user string, rv uint64) string {
	own, other := before(o.crs[key], rv), before(o.crs[user], rv)
	if own == nil || other == nil || own.ignoresDependents || !slices.Contains(other.needs, key) || o.reaches(key, user, rv) {
		return ""
	}
	for _, record := range o.records[user] {
		if record.begin < rv && (record.end == 0 || record.end > rv) {
			return "its records still exist"
		}
	}
	return ""
}

// reaches reports whether a custom resource depends on another one, directly or not, so that
// both are in a cycle.
func (o *order) reaches(from, to string, rv uint64) bool {
	seen, next := map[string]bool{}, []string{from}
	for len(next) > 0 {
		key := next[0]
		next = next[1:]
		if seen[key] {
			continue
		}
		seen[key] = true
		if v := before(o.crs[key], rv); v != nil {
			next = append(next, v.needs...)
		}
	}
	return seen[to]
}

// catchUp waits until the last versions of all custom resources are recorded.
func (o *order) catchUp() {
	o.g.t.Helper()
	for _, in := range o.g.graphs {
		for _, n := range in.nodes {
			in.Wait("the changes of "+n.name+" to be recorded", func(ctx context.Context) error {
				last := version{gone: true}
				live, err := in.At(n.object()).Get(ctx, n.name, metav1.GetOptions{})
				if err == nil {
					last = stateOf(live)
				}
				o.mu.Lock()
				defer o.mu.Unlock()
				versions := o.crs[in.Namespace+"/"+n.name]
				if len(versions) == 0 || last.rv > versions[len(versions)-1].rv || last.gone && !versions[len(versions)-1].gone {
					return fmt.Errorf("version %d is missing", last.rv)
				}
				return nil
			})
		}
	}
}
