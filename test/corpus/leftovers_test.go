package corpus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// rules define which objects may remain after a release, by its records and its
// chart.
type rules struct {
	// rendered are the objects of all revisions and their hooks.
	rendered map[string]bool
	// stays are the objects that Helm or the chart keeps.
	stays map[string]bool
	// claims match the claims of StatefulSets.
	claims []*regexp.Regexp
}

// rules reads the release's records, which must still exist.
func (tr *trial) rules() rules {
	tr.t.Helper()
	found := rules{rendered: map[string]bool{}, stays: map[string]bool{}}
	records := tr.env.Records("web")
	for i := range records {
		revision, err := harness.ReadRevision(&records[i])
		if err != nil {
			tr.t.Fatal(err)
		}
		objects, err := revision.Objects()
		if err != nil {
			tr.t.Fatal(err)
		}
		for _, object := range flatten(objects) {
			found.add(tr.key(object), object)
		}
		hooks, err := revision.HookObjects()
		if err != nil {
			tr.t.Fatal(err)
		}
		for _, hook := range flatten(hooks) {
			found.addHook(tr.key(hook), hook)
		}
	}
	for _, name := range tr.definitions() {
		found.rendered[definition+" "+name] = true
		found.stays[definition+" "+name] = true
	}
	return found
}

func (r *rules) add(key string, object *unstructured.Unstructured) {
	r.rendered[key] = true
	if object.GetAnnotations()["helm.sh/resource-policy"] == "keep" || slices.Contains(guarded, object.GetKind()) {
		r.stays[key] = true
	}
	if object.GetKind() != "StatefulSet" {
		return
	}
	templates, _, _ := unstructured.NestedSlice(object.Object, "spec", "volumeClaimTemplates")
	for _, template := range templates {
		name, _, _ := unstructured.NestedString(template.(map[string]any), "metadata", "name")
		r.claims = append(r.claims, regexp.MustCompile("^PersistentVolumeClaim "+regexp.QuoteMeta(name+"-"+object.GetName())+"-[0-9]+$"))
	}
}

// guarded are the kinds that the data guard keeps.
var guarded = []string{"PersistentVolumeClaim", "PersistentVolume", "Namespace", definition}

// keptHooks are the kinds that are kept if a hook created them. Charts create
// Secrets by hooks so that they survive.
var keptHooks = append(slices.Clone(guarded), "Secret")

func (r *rules) addHook(key string, hook *unstructured.Unstructured) {
	r.add(key, hook)
	if slices.Contains(keptHooks, hook.GetKind()) {
		r.stays[key] = true
	}
}

func (r *rules) permit(key string) bool {
	return r.stays[key] || slices.ContainsFunc(r.claims, func(claim *regexp.Regexp) bool { return claim.MatchString(key) })
}

// flatten returns the items of lists.
func flatten(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var flat []*unstructured.Unstructured
	for _, object := range objects {
		if !object.IsList() {
			flat = append(flat, object)
			continue
		}
		_ = object.EachListItem(func(item runtime.Object) error {
			flat = append(flat, item.(*unstructured.Unstructured))
			return nil
		})
	}
	return flat
}

// definitions returns the names in the chart's crds/ folders.
func (tr *trial) definitions() (names []string) {
	tr.t.Helper()
	err := filepath.WalkDir(tr.chart, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.Contains(path, string(filepath.Separator)+"crds"+string(filepath.Separator)) ||
			strings.Contains(path, string(filepath.Separator)+"templates"+string(filepath.Separator)) {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		objects, err := harness.ReadObjects(string(data))
		for _, object := range objects {
			if object.GetKind() == definition {
				names = append(names, object.GetName())
			}
		}
		return err
	})
	if err != nil {
		tr.t.Fatal(err)
	}
	return names
}

// key names an object as in the table: without the namespace if it is the
// test's.
func (tr *trial) key(object *unstructured.Unstructured) string {
	name := object.GetName()
	if namespace := object.GetNamespace(); namespace != "" && namespace != tr.env.Namespace {
		name = namespace + "/" + name
	}
	return object.GetKind() + " " + name
}

// baseline returns the test's objects before the install: accounts and
// permissions of the operator, and the default objects of each namespace.
func (tr *trial) baseline() map[string]bool {
	tr.t.Helper()
	found, err := tr.scan(tr.t.Context(), nil)
	if err != nil {
		tr.t.Fatal(err)
	}
	names := map[string]bool{}
	for key := range found {
		names[key] = true
	}
	return names
}

// scan lists all objects that mention the test's namespace or the custom
// resource, and all rendered objects of the release.
func (tr *trial) scan(ctx context.Context, rendered map[string]bool) (map[string]*unstructured.Unstructured, error) {
	lists, err := tr.env.Typed.Discovery().ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	found := map[string]*unstructured.Unstructured{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			// CRDs are large and are listed below.
			if resource.Kind == "Event" || resource.Kind == definition || !slices.Contains(resource.Verbs, "list") {
				continue
			}
			live, err := tr.env.Dynamic.Resource(version.WithResource(resource.Name)).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue // a CRD that another test has deleted meanwhile
			}
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", resource.Name, err)
			}
			for i := range live.Items {
				key := tr.key(&live.Items[i])
				text, err := json.Marshal(live.Items[i].Object)
				if err != nil {
					return nil, err
				}
				if rendered[key] || strings.Contains(string(text), tr.env.Namespace) || tr.uid != "" && strings.Contains(string(text), tr.uid) {
					found[key] = &live.Items[i]
				}
			}
		}
	}
	delete(found, "Namespace "+tr.env.Namespace)
	for key := range rendered {
		name, is := strings.CutPrefix(key, definition+" ")
		if !is {
			continue
		}
		live, err := tr.env.At(harness.Object("apiextensions.k8s.io/v1", definition, name)).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			found[key] = live
		} else if !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return found, nil
}

const definition = "CustomResourceDefinition"

// nothingLeft waits until only the objects from before and the permitted ones
// remain. The garbage collector needs some time.
func (tr *trial) nothingLeft(before map[string]bool, permitted rules) {
	tr.t.Helper()
	var found []string
	tr.env.Wait("only permitted objects to remain", func(ctx context.Context) error {
		live, err := tr.scan(ctx, permitted.rendered)
		if err != nil {
			return err
		}
		maps.DeleteFunc(live, func(key string, object *unstructured.Unstructured) bool {
			return before[key] || boundTo(object, live)
		})
		found = slices.Sorted(maps.Keys(live))
		var wrong []error
		for _, key := range found {
			if !permitted.permit(key) {
				wrong = append(wrong, fmt.Errorf("%s remains (created %s, labels %v)", key, live[key].GetCreationTimestamp().Format(time.TimeOnly), live[key].GetLabels()))
			}
		}
		return errors.Join(wrong...)
	})
	want := slices.Sorted(slices.Values(tr.leaves))
	if !tr.public && !slices.Equal(found, want) {
		tr.t.Errorf("the deletion leaves %q, want %q", found, want)
	}
	tr.t.Logf("remaining as expected: %q", found)
}

// boundTo reports whether an object is the volume of a claim that is kept.
func boundTo(object *unstructured.Unstructured, live map[string]*unstructured.Unstructured) bool {
	if object.GetKind() != "PersistentVolume" {
		return false
	}
	name, _, _ := unstructured.NestedString(object.Object, "spec", "claimRef", "name")
	return live["PersistentVolumeClaim "+name] != nil
}
