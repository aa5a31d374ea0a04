package plugin

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
)

// plannedChange is what an upgrade does to one object.
type plannedChange struct {
	objectRef

	// Action is create, change, recreate, delete or leave.
	Action apply.Verb `json:"action"`
	// Fields are the fields of the object that change.
	Fields []plannedField `json:"fields,omitempty"`
	// PodsRestarted is the number of pods that are replaced.
	PodsRestarted int64 `json:"podsRestarted,omitempty"`
	// DataAtRisk is why the change needs an approval.
	DataAtRisk string `json:"dataAtRisk,omitempty"`
	// Unknown is why the fields may be incomplete.
	Unknown string `json:"unknown,omitempty"`
}

// plannedField is a field that changes. A value that does not exist is omitted.
type plannedField struct {
	Path   string `json:"path"`
	Before any    `json:"before,omitempty"`
	After  any    `json:"after,omitempty"`
}

// changesOf returns the changes of writes. It omits writes that change nothing.
func changesOf(writes []apply.Write, secrets valuesfrom.Secrets) []plannedChange {
	found := []plannedChange{}
	for _, write := range writes {
		change := plannedChange{objectRef: objectRef(write.Key), Action: write.Verb}
		if write.Unknown != nil {
			change.Unknown = secrets.Redact(write.Unknown.Error())
		}
		switch write.Verb {
		case apply.Change, apply.Recreate:
			// Without a dry run, the object lacks the fields that the API server sets.
			complete := write.Verb == apply.Change && write.Unknown == nil
			change.Fields = fieldsOf(write.Before, write.After, complete, secrets)
			change.PodsRestarted = restarted(write)
		}
		if write.Verb != apply.Change || len(change.Fields) > 0 || change.Unknown != "" {
			found = append(found, change)
		}
	}
	return found
}

// fieldsOf returns the fields that differ. If the object after the change is not complete,
// fields that only the object before has are ignored.
func fieldsOf(before, after *unstructured.Unstructured, complete bool, secrets valuesfrom.Secrets) []plannedField {
	if before == nil || after == nil {
		return nil
	}
	before, after = mask(before, after)
	d := differ{complete: complete, secrets: secrets}
	d.compare("", withoutServerFields(before), withoutServerFields(after))
	return d.fields
}

// withoutServerFields returns the content of an object without what the API server sets in each
// write.
func withoutServerFields(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid", "selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", api.AnnotationApplied)
	delete(o.Object, "status")
	return o.Object
}

// differ collects fields that differ.
type differ struct {
	complete bool
	secrets  valuesfrom.Secrets
	fields   []plannedField
}

// compare compares two values at a path.
func (d *differ) compare(path string, before, after any) {
	was, wasMap := before.(map[string]any)
	is, isMap := after.(map[string]any)
	items, wasList := named(before)
	others, isList := named(after)
	switch {
	case wasMap && isMap:
		for _, key := range sets.List(sets.KeySet(was).Union(sets.KeySet(is))) {
			d.compareKey(below(path, key), was, is, key)
		}
	case wasList && isList:
		for _, key := range sets.List(sets.KeySet(items).Union(sets.KeySet(others))) {
			d.compareKey(fmt.Sprintf("%s[%s]", path, key), items, others, key)
		}
	case !reflect.DeepEqual(before, after):
		d.fields = append(d.fields, plannedField{Path: path, Before: d.redact(before), After: d.redact(after)})
	}
}

func (d *differ) compareKey(path string, before, after map[string]any, key string) {
	was, existed := before[key]
	is, exists := after[key]
	switch {
	case existed && exists:
		d.compare(path, was, is)
	case exists:
		d.fields = append(d.fields, plannedField{Path: path, After: d.redact(is)})
	case d.complete:
		d.fields = append(d.fields, plannedField{Path: path, Before: d.redact(was)})
	}
}

// below returns the path of a key, in brackets if it contains a dot.
func below(path, key string) string {
	if strings.ContainsAny(key, "./") {
		return path + "[" + key + "]"
	}
	return join(".", path, key)
}

// named returns the items of a list by their names, if each has another one.
func named(value any) (map[string]any, bool) {
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		return nil, false
	}
	found := make(map[string]any, len(list))
	for _, item := range list {
		fields, _ := item.(map[string]any)
		name, ok := fields["name"].(string)
		if _, twice := found[name]; !ok || twice {
			return nil, false
		}
		found[name] = item
	}
	return found, true
}

// redact returns a value without secrets.
func (d *differ) redact(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		redacted := make(map[string]any, len(typed))
		for key, inner := range typed {
			redacted[key] = d.redact(inner)
		}
		return redacted
	case []any:
		redacted := make([]any, len(typed))
		for i, inner := range typed {
			redacted[i] = d.redact(inner)
		}
		return redacted
	case nil:
		return nil
	}
	text := fmt.Sprint(value)
	if redacted := d.secrets.Redact(text); redacted != text {
		return redacted
	}
	return value
}

// restarted returns the number of pods that a write replaces: those of a workload whose pod
// template changes or that is recreated.
func restarted(write apply.Write) int64 {
	if write.Before == nil || write.After == nil || write.Group != "apps" {
		return 0
	}
	replicas, _, _ := unstructured.NestedInt64(write.Before.Object, "spec", "replicas")
	onDelete := "updateStrategy"
	switch write.Kind {
	case "Deployment":
		onDelete = ""
	case "StatefulSet":
		if write.Verb == apply.Recreate {
			// The new StatefulSet adopts the pods.
			break
		}
	case "DaemonSet":
		replicas, _, _ = unstructured.NestedInt64(write.Before.Object, "status", "desiredNumberScheduled")
	default:
		return 0
	}
	if write.Verb == apply.Recreate && write.Kind != "StatefulSet" {
		return replicas
	}
	if after, found, _ := unstructured.NestedInt64(write.After.Object, "spec", "replicas"); found {
		replicas = min(replicas, after)
	}
	before, _, _ := unstructured.NestedMap(write.Before.Object, "spec", "template")
	after, _, _ := unstructured.NestedMap(write.After.Object, "spec", "template")
	strategy, _, _ := unstructured.NestedString(write.After.Object, "spec", onDelete, "type")
	paused, _, _ := unstructured.NestedBool(write.After.Object, "spec", "paused")
	if paused || onDelete != "" && strategy == "OnDelete" || reflect.DeepEqual(before, after) {
		return 0
	}
	return replicas
}
