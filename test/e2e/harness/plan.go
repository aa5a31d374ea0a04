package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Planned is the output of "kubectl chartwright plan KIND/NAME -o json", with the
// objects that the plan changes as they were before.
type Planned struct {
	Result        string
	State         string
	Revision      int
	Changes       []PlannedChange
	PodsRestarted int64
	Hooks         []struct{ Group, Kind, Namespace, Name, Event string }
	Approval      *struct {
		Digest, Summary string
		Approved        bool
	}
	Refused, Warnings, Unknown []string
	Error                      string

	// Code is the exit code.
	Code   int
	before map[int]*unstructured.Unstructured
}

// PlannedChange is what the plan does to one object.
type PlannedChange struct {
	Group, Kind, Namespace, Name, Action string
	Fields                               []struct {
		Path          string
		Before, After any
	}
	PodsRestarted       int64
	DataAtRisk, Unknown string
}

// Plan runs "plan KIND/NAME" with an edited custom resource and a watches file.
func (p *User) Plan(edited *unstructured.Unstructured, watches string) Planned {
	e := p.env
	e.t.Helper()
	data, err := json.Marshal(edited)
	e.must(err)
	gvk := edited.GroupVersionKind()
	output := p.ChartwrightWith(string(data), "plan", strings.ToLower(gvk.Kind)+"."+gvk.Group+"/"+edited.GetName(), "-f", "-", "--watches-file", watches, "-o", "json")
	planned := Planned{Code: output.Code, before: map[int]*unstructured.Unstructured{}}
	if err := json.Unmarshal([]byte(output.Stdout), &planned); err != nil {
		e.t.Fatalf("plan: %v\n%s%s", err, output.Stdout, output.Stderr)
	}
	for i, change := range planned.Changes {
		if change.Action != "create" {
			planned.before[i] = e.objectOf(change)
		}
	}
	return planned
}

// mapper finds the resources of kinds.
var mapper = sync.OnceValues(func() (meta.RESTMapper, error) {
	httpClient, err := rest.HTTPClientFor(shared.config)
	if err != nil {
		return nil, err
	}
	return apiutil.NewDynamicRESTMapper(shared.config, httpClient)
})

// clientOf returns the client for the object of a change.
func (e *Env) clientOf(change PlannedChange) dynamic.ResourceInterface {
	e.t.Helper()
	all, err := mapper()
	e.must(err)
	mapping, err := all.RESTMapping(schema.GroupKind{Group: change.Group, Kind: change.Kind})
	e.must(err)
	return e.Dynamic.Resource(mapping.Resource).Namespace(change.Namespace)
}

// objectOf returns the live object of a change, or nil.
func (e *Env) objectOf(change PlannedChange) *unstructured.Unstructured {
	e.t.Helper()
	live, err := e.clientOf(change).Get(e.t.Context(), change.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	e.must(err)
	return live
}

// Compare compares the plan with what the operator has done since the audit began: the
// writes, which are those of the plan and no others, and the objects. Without fields, only
// the objects and operations are compared. Hooks and what they write are excluded.
func (p Planned) Compare(e *Env, audit *Audit, fields bool) {
	e.t.Helper()
	if p.Error != "" || len(p.Refused) > 0 || len(p.Unknown) > 0 {
		e.t.Errorf("the plan is incomplete: %+v", p)
	}
	if planned, done := p.writes(e), p.done(e, audit); !slices.Equal(planned, done) {
		e.t.Errorf("the plan and the writes of the operator differ:\n%s\n%s", strings.Join(planned, "\n"), strings.Join(done, "\n"))
	}
	for i, change := range p.Changes {
		live := e.objectOf(change)
		switch change.Action {
		case "create", "leave", "recreate":
			// A Job may have been deleted by its TTL.
			if live == nil && change.Kind != "Job" {
				e.t.Errorf("%s %s: the object does not exist", change.Kind, change.Name)
			}
		case "delete":
			if live != nil && live.GetDeletionTimestamp() == nil {
				e.t.Errorf("%s %s still exists", change.Kind, change.Name)
			}
		case "change":
			if fields {
				e.compareFields(change, p.before[i], live)
			}
		}
	}
}

// WaitDeleted waits until the objects that the plan deletes no longer exist.
func (p Planned) WaitDeleted(e *Env) {
	e.t.Helper()
	for _, change := range p.Changes {
		if change.Action == "delete" {
			e.Wait(change.Name+" to be gone", func(context.Context) error {
				if e.objectOf(change) != nil {
					return errors.New("it exists")
				}
				return nil
			})
		}
	}
}

// writes returns the writes of the plan: verb, resource, namespace and name.
func (p Planned) writes(e *Env) (found []string) {
	for _, change := range p.Changes {
		name := e.requestName(change.Group, change.Kind, change.Namespace, change.Name)
		switch change.Action {
		case "recreate":
			found = append(found, "delete "+name, "patch "+name)
		case "delete":
			found = append(found, "delete "+name)
		default:
			found = append(found, "patch "+name)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// requestName returns the resource, namespace and name of an object.
func (e *Env) requestName(group, kind, namespace, name string) string {
	e.t.Helper()
	all, err := mapper()
	e.must(err)
	mapping, err := all.RESTMapping(schema.GroupKind{Group: group, Kind: kind})
	e.must(err)
	return fmt.Sprintf("%s %s/%s", mapping.Resource.GroupResource(), namespace, name)
}

// done returns the successful writes of the operator to objects of releases.
func (p Planned) done(e *Env, audit *Audit) (found []string) {
	hooks := map[string]bool{}
	for _, hook := range p.Hooks {
		hooks[e.requestName(hook.Group, hook.Kind, hook.Namespace, hook.Name)] = true
	}
	for _, request := range audit.Writes("") {
		ref := request.ObjectRef
		if strings.Contains(request.RequestURI, "dryRun=All") || request.ResponseStatus.Code >= 300 || ref.Subresource != "" ||
			ref.Resource == "events" || strings.HasPrefix(ref.Name, "sh.helm.release.v1.") {
			continue
		}
		name := fmt.Sprintf("%s %s/%s", schema.GroupResource{Group: ref.APIGroup, Resource: ref.Resource}, ref.Namespace, ref.Name)
		if !hooks[name] {
			found = append(found, request.Verb+" "+name)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// compareFields compares an object with what the fields of the plan make of the object
// before.
func (e *Env) compareFields(change PlannedChange, before, live *unstructured.Unstructured) {
	e.t.Helper()
	if before == nil || live == nil {
		e.t.Errorf("%s %s: the object does not exist", change.Kind, change.Name)
		return
	}
	expected, found := byName(contentOf(before)), byName(contentOf(live))
	for _, field := range change.Fields {
		if field.After == "*** (after)" {
			// The plan only shows that the value changes.
			if value(expected, field.Path) == value(found, field.Path) {
				e.t.Errorf("%s %s: %s is unchanged", change.Kind, change.Name, field.Path)
			}
			field.After = value(found, field.Path)
		}
		if err := set(expected, field.Path, byName(field.After)); err != nil {
			e.t.Errorf("%s %s: %s: %v", change.Kind, change.Name, field.Path, err)
		}
	}
	if !reflect.DeepEqual(expected, found) {
		want, _ := json.Marshal(expected)
		got, _ := json.Marshal(found)
		e.t.Errorf("%s %s differs from the plan: %+v\nplan %s\nlive %s", change.Kind, change.Name, change.Fields, want, got)
	}
}

// contentOf returns an object, in the types of JSON, without the fields that the API server
// and controllers write, and without the annotation of the last apply.
func contentOf(object *unstructured.Unstructured) any {
	object = object.DeepCopy()
	for _, field := range []string{"generation", "managedFields", "resourceVersion"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	for _, annotation := range []string{"chartwright.dev/applied", "deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation"} {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations", annotation)
	}
	delete(object.Object, "status")
	var content any
	data, err := json.Marshal(object.Object)
	if err == nil {
		err = json.Unmarshal(data, &content)
	}
	if err != nil {
		panic(err)
	}
	return content
}

// byName returns a value with each list of named items as a map by name, because a plan does
// not show the order of items.
func byName(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(typed))
		for key, inner := range typed {
			copied[key] = byName(inner)
		}
		return copied
	case []any:
		named := map[string]any{}
		for _, item := range typed {
			fields, _ := item.(map[string]any)
			name, ok := fields["name"].(string)
			if !ok || named[name] != nil {
				return value
			}
			named[name] = byName(item)
		}
		return named
	}
	return value
}

// set sets a field, or deletes it if the value is nil. A part of the path in brackets is a
// name in a list or a key with dots.
func set(in any, path string, value any) error {
	keys := keysOf(path)
	last := len(keys) - 1
	for i, key := range keys {
		fields, ok := in.(map[string]any)
		switch {
		case !ok:
			return fmt.Errorf("%s is not in an object", key)
		case i < last:
			in = fields[key]
		case value == nil:
			delete(fields, key)
		default:
			fields[key] = value
		}
	}
	return nil
}

// value returns the value of a field, or nil.
func value(in any, path string) any {
	for _, key := range keysOf(path) {
		inner, _ := in.(map[string]any)
		in = inner[key]
	}
	return in
}

func keysOf(path string) (keys []string) {
	for path != "" {
		path = strings.TrimPrefix(path, ".")
		if rest, ok := strings.CutPrefix(path, "["); ok {
			key, after, _ := strings.Cut(rest, "]")
			keys, path = append(keys, key), after
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		keys, path = append(keys, path[:end]), path[end:]
	}
	return keys
}

// ExpectReadOnly checks that a user has only read since the audit began, apart from dry
// runs.
func (a *Audit) ExpectReadOnly() {
	a.env.t.Helper()
	requests := a.Requests()
	if len(requests) == 0 {
		a.env.t.Error("the audit log contains no request of the user")
	}
	for _, request := range requests {
		if request.Write() && !strings.Contains(request.RequestURI, "dryRun=All") {
			a.env.t.Errorf("the user wrote: %s", request)
		}
	}
}
