package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/authoring/preview"
	"github.com/chartwright/chartwright/internal/catalog"
)

// rules check custom resources of a kind.
type rules struct {
	topic     string
	admission *preview.Admission
	selector  labels.Selector
}

func newRules(kind catalog.Kind) (*rules, error) {
	admission, err := preview.NewAdmission(kind)
	if err != nil {
		return nil, err
	}
	r := &rules{topic: topicOf(kind), admission: admission, selector: labels.Everything()}
	if kind.Selector != nil {
		r.selector, err = metav1.LabelSelectorAsSelector(kind.Selector)
	}
	return r, err
}

// resourceName returns the name of a custom resource in findings.
func resourceName(cr *unstructured.Unstructured) string {
	return strings.TrimPrefix(cr.GetNamespace()+"/"+cr.GetName(), "/")
}

// spec returns findings about fields that the API server would drop or reject with the
// derived CRD.
func (r *rules) spec(cr *unstructured.Unstructured) []Finding {
	f := finder{topic: r.topic, resources: []string{resourceName(cr)}}
	kept := cr.DeepCopy()
	for _, path := range r.admission.Prune(kept) {
		value, _ := fieldAt(cr.Object, path)
		found := f.addf(Breaks, "", "%s: the CRD does not have this field: the API server drops it", path)
		found.Do = fmt.Sprintf("if the chart uses the field, declare it in values.schema.json (%s); otherwise remove it", propertyFor(path, value))
		found.Lines = r.patchCommand(cr, map[string]any{"op": "remove", "path": pointerTo(path)})
	}
	for _, problem := range r.admission.Invalid(kept) {
		found := f.addf(Breaks, "", "%s: the CRD rejects the value: %s", problem.Field, problem.ErrorBody())
		found.Do = "correct the value, or allow it in values.schema.json"
		if value, exists := fieldAt(cr.Object, problem.Field); exists {
			if better, ok := converted(value, problem.Detail); ok {
				found.Do = fmt.Sprintf("write %s instead of %s, or allow the value in values.schema.json", show(better), show(value))
				found.Lines = r.patchCommand(cr, map[string]any{"op": "replace", "path": pointerTo(problem.Field), "value": better})
			}
		}
	}
	return f.findings
}

// metadata adds findings about labels, finalizers, annotations and conditions of the
// custom resource.
func (r *resourceCheck) metadata() {
	if selector := r.rules.selector; !selector.Matches(labels.Set(r.cr.GetLabels())) {
		r.addf(Breaks, "", "the labels do not match the selector %s of the entry: Chartwright would not reconcile the custom resource, nor uninstall its release when it is deleted", selector).
			Do = "add the labels, or change the selector"
	}
	if r.cr.GetDeletionTimestamp() != nil {
		r.addf(ToDo, "", "the custom resource is being deleted").Do = "wait until the old operator has finished, before you stop it"
	}
	for _, finalizer := range r.cr.GetFinalizers() {
		if finalizer == sdkDomain+"uninstall-release" || finalizer == "uninstall-helm-release" {
			r.addf(Works, "", "the finalizer %s is replaced by %s", finalizer, api.Finalizer)
		}
	}
	r.annotations()
	conditions, _, _ := unstructured.NestedSlice(r.cr.Object, "status", "conditions")
	for _, item := range conditions {
		condition, ok := item.(map[string]any)
		if !ok || condition["status"] != "True" {
			continue
		}
		if kind := condition["type"]; kind == "Irreconcilable" || kind == "ReleaseFailed" {
			r.addf(ToDo, "", "the custom resource is failing (condition %s): %v", kind, condition["message"]).
				Do = "fix it before or after the migration: Chartwright retries with backoff, and does not uninstall the release"
		}
	}
}

// sdkDomain is the prefix of the operator-sdk's annotations.
const sdkDomain = "helm.sdk.operatorframework.io/"

// annotations adds findings about the operator-sdk's annotations.
func (r *resourceCheck) annotations() {
	values := r.cr.GetAnnotations()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !strings.HasPrefix(key, sdkDomain):
		case !annotations.IsKnown(key):
			r.addf(Changes, "", "the annotation %s has no effect", key)
		case len(annotations.Parse(map[string]string{key: values[key]}).Problems) > 0:
			r.addf(Changes, "", "the annotation %s has the invalid value %q: Chartwright ignores it, and reports it in the condition InvalidAnnotations", key, values[key]).
				Do = "correct the value, or remove the annotation"
		default:
			r.addf(Works, "", "the annotation %s works unchanged", key)
		}
	}
}

// step matches the steps of a path in the notation of the API server, such as
// spec.list[0].name. A key that contains a dot is taken for two keys.
var step = regexp.MustCompile(`[^.\[\]]+`)

// pointerTo returns the JSON pointer of a path.
func pointerTo(path string) string {
	var pointer strings.Builder
	for _, part := range step.FindAllString(path, -1) {
		pointer.WriteString("/" + jsonpointer.Escape(part))
	}
	return pointer.String()
}

// fieldAt returns the value at a path, and whether it exists.
func fieldAt(object any, path string) (any, bool) {
	pointer, err := jsonpointer.New(pointerTo(path))
	if err != nil {
		return nil, false
	}
	value, _, err := pointer.Get(object)
	return value, err == nil
}

// expectedType captures the type that the API server expects.
var expectedType = regexp.MustCompile(`must be of type (\w+):`)

// converted converts a value to the type that the API server expects, if the conversion
// is unambiguous.
func converted(value any, complaint string) (any, bool) {
	match := expectedType.FindStringSubmatch(complaint)
	if match == nil {
		return nil, false
	}
	text, isText := value.(string)
	switch match[1] {
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		return n, isText && err == nil
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		return n, isText && err == nil
	case "boolean":
		return text == "true", isText && (text == "true" || text == "false")
	case "string":
		switch v := value.(type) {
		case int64, float64, bool:
			return fmt.Sprint(v), true
		}
	}
	return nil, false
}

// patchCommand returns a kubectl command that changes one field of the spec, or nothing
// for other fields.
func (r *rules) patchCommand(cr *unstructured.Unstructured, operation map[string]any) string {
	patch, err := json.Marshal([]any{operation})
	if err != nil || !strings.HasPrefix(fmt.Sprint(operation["path"]), "/spec/") {
		return ""
	}
	spec := r.admission.Definition().Spec
	namespace := ""
	if cr.GetNamespace() != "" {
		namespace = " -n " + cr.GetNamespace()
	}
	return fmt.Sprintf("kubectl patch%s %s.%s %s --type=json -p '%s'\n",
		namespace, spec.Names.Plural, spec.Group, cr.GetName(), strings.ReplaceAll(string(patch), "'", `'\''`))
}

// jsonTypes are the types of JSON schema by the kinds of Go values.
var jsonTypes = map[reflect.Kind]string{
	reflect.String: "string", reflect.Bool: "boolean", reflect.Int64: "integer", reflect.Float64: "number", reflect.Slice: "array", reflect.Map: "object",
}

// propertyFor returns the declaration of a field for values.schema.json.
func propertyFor(path string, value any) string {
	parts := step.FindAllString(path, -1)
	if len(parts) == 0 {
		return ""
	}
	declared := ""
	if name, known := jsonTypes[reflect.ValueOf(value).Kind()]; known {
		declared = fmt.Sprintf(`"type": %q`, name)
	}
	return fmt.Sprintf("%q: {%s}", parts[len(parts)-1], declared)
}

// show returns a value as JSON.
func show(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}
