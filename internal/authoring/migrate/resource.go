package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/authoring/preview"
	"github.com/chartwright/chartwright/internal/catalog"
)

// rules are what a custom resource of a kind is held against.
type rules struct {
	kind      catalog.Kind
	admission *preview.Admission
	selector  labels.Selector
}

func newRules(kind catalog.Kind) (*rules, error) {
	admission, err := preview.NewAdmission(kind)
	if err != nil {
		return nil, err
	}
	r := &rules{kind: kind, admission: admission}
	if kind.Selector != nil {
		if r.selector, err = metav1.LabelSelectorAsSelector(kind.Selector); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// resourceName is how findings name a custom resource.
func resourceName(cr *unstructured.Unstructured) string {
	return strings.TrimPrefix(cr.GetNamespace()+"/"+cr.GetName(), "/")
}

// spec tells what the derived CRD would do to a custom resource.
func (r *rules) spec(cr *unstructured.Unstructured) []Finding {
	f := finder{topic: topicOf(r.kind)}
	kept := cr.DeepCopy()
	for _, path := range r.admission.Prune(kept) {
		pointer := pointerTo(path)
		value, _ := lookUp(cr.Object, pointer)
		found := f.addf(Breaks, "", "%s: the CRD has no such field, and drops it", path)
		found.Do = fmt.Sprintf("if the chart uses it, declare it in values.schema.json (%s); if not, take it out", propertyFor(path, value))
		found.Lines = patchCommand(cr, r.admission, map[string]any{"op": "remove", "path": pointer})
		found.Resources = []string{resourceName(cr)}
	}
	for _, problem := range r.admission.Invalid(kept) {
		pointer := pointerTo(problem.Field)
		found := f.addf(Breaks, "", "%s: the CRD refuses it: %s", problem.Field, problem.ErrorBody())
		found.Do = "mend the value, or let values.schema.json take it"
		found.Resources = []string{resourceName(cr)}
		if value, exists := lookUp(cr.Object, pointer); exists {
			if better, ok := converted(value, problem.Detail); ok {
				found.Do = fmt.Sprintf("write %s in place of %s, or let values.schema.json take it", show(better), show(value))
				found.Lines = patchCommand(cr, r.admission, map[string]any{"op": "replace", "path": pointer, "value": better})
			}
		}
	}
	return f.findings
}

// live tells what becomes of a custom resource in the cluster, beside its spec.
func (r *rules) live(cr *unstructured.Unstructured) []Finding {
	f := finder{topic: topicOf(r.kind)}
	of := []string{resourceName(cr)}
	if r.selector != nil && !r.selector.Matches(labels.Set(cr.GetLabels())) {
		found := f.addf(Breaks, "", "its labels do not match the selector %s of the entry, so that nobody would serve it, and delete its objects when it goes", r.selector)
		found.Do, found.Resources = "label it, or change the selector", of
	}
	if cr.GetDeletionTimestamp() != nil {
		found := f.addf(ToDo, "", "it is being deleted")
		found.Do, found.Resources = "let the old operator end that before it stops", of
	}
	for _, finalizer := range cr.GetFinalizers() {
		if theirFinalizers[finalizer] {
			f.addf(Works, "", "the finalizer %s is replaced by %s", finalizer, api.Finalizer).Resources = of
		}
	}
	f.annotations(cr)
	f.conditions(cr)
	return f.findings
}

// conditions tells of custom resources that are not well today.
func (f *finder) conditions(cr *unstructured.Unstructured) {
	list, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
	for _, item := range list {
		condition, ok := item.(map[string]any)
		if !ok || condition["status"] != "True" {
			continue
		}
		switch kind := condition["type"]; kind {
		case "Irreconcilable", "ReleaseFailed":
			found := f.addf(ToDo, "", "it fails today (condition %s): %v", kind, condition["message"])
			found.Do, found.Resources = "mend it first, or know that it goes on failing: it is tried again ever more slowly, and never uninstalled for that", []string{resourceName(cr)}
		}
	}
}

// theirFinalizers are those that hold custom resources until they are
// uninstalled.
var theirFinalizers = map[string]bool{
	"helm.sdk.operatorframework.io/uninstall-release": true,
	"uninstall-helm-release":                          true,
}

// theirDomain is what the annotations of the operator-sdk's users begin with.
const theirDomain = "helm.sdk.operatorframework.io/"

// theirAnnotations are those that mean something, with the type of their
// values.
var theirAnnotations = map[string]func(string) error{
	"upgrade-force": isBool, "rollback-force": isBool, "uninstall-wait": isBool,
	"reconcile-period":      isDuration,
	"install-disable-hooks": isBool, "upgrade-disable-hooks": isBool, "uninstall-disable-hooks": isBool,
	"install-description": isText, "upgrade-description": isText, "uninstall-description": isText,
}

func isBool(text string) error {
	_, err := strconv.ParseBool(text)
	return err
}

func isDuration(text string) error {
	_, err := time.ParseDuration(text)
	return err
}

func isText(string) error { return nil }

// annotations tells of annotations of the operator-sdk's on a custom resource.
func (f *finder) annotations(cr *unstructured.Unstructured) {
	annotations := cr.GetAnnotations()
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		name, theirs := strings.CutPrefix(key, theirDomain)
		if !theirs {
			continue
		}
		check, known := theirAnnotations[name]
		of := []string{resourceName(cr)}
		if !known {
			f.addf(Changes, "", "the annotation %s has no effect", key).Resources = of
			continue
		}
		if err := check(annotations[key]); err != nil {
			found := f.addf(Changes, "", "the annotation %s has the value %q, which cannot be understood: it stops nothing, and the condition InvalidAnnotations says so", key, annotations[key])
			found.Do, found.Resources = "mend the value, or remove the annotation", of
			continue
		}
		f.addf(Works, "", "the annotation %s", key).Resources = of
	}
}

// step finds the steps of a path as the API server writes it: spec.list[0].name.
var step = regexp.MustCompile(`[^.\[\]]+`)

// pointerTo turns a path of the API server's into a JSON pointer. A key that has
// a dot in it cannot be told from two.
func pointerTo(path string) string {
	var pointer strings.Builder
	for _, part := range step.FindAllString(path, -1) {
		pointer.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(part))
	}
	return pointer.String()
}

// lookUp returns what is at a JSON pointer.
func lookUp(value any, pointer string) (any, bool) {
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch v := value.(type) {
		case map[string]any:
			inner, exists := v[part]
			if !exists {
				return nil, false
			}
			value = inner
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// ofType finds the type that the API server wants.
var ofType = regexp.MustCompile(`must be of type (\w+):`)

// converted returns the value as the type that the API server asks for, where
// nobody can doubt which one that is.
func converted(value any, complaint string) (any, bool) {
	match := ofType.FindStringSubmatch(complaint)
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

// patchCommand is the command line that changes one field of a custom resource.
func patchCommand(cr *unstructured.Unstructured, admission *preview.Admission, operation map[string]any) string {
	patch, err := json.Marshal([]any{operation})
	if err != nil || !strings.HasPrefix(fmt.Sprint(operation["path"]), "/spec/") {
		return ""
	}
	definition := admission.Definition()
	namespace := ""
	if cr.GetNamespace() != "" {
		namespace = " -n " + cr.GetNamespace()
	}
	return fmt.Sprintf("kubectl patch%s %s.%s %s --type=json -p '%s'\n",
		namespace, definition.Spec.Names.Plural, definition.Spec.Group, cr.GetName(), strings.ReplaceAll(string(patch), "'", `'\''`))
}

// propertyFor is how values.schema.json declares a field.
func propertyFor(path string, value any) string {
	parts := step.FindAllString(path, -1)
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%q: {%s}", parts[len(parts)-1], typeOf(value))
}

func typeOf(value any) string {
	switch value.(type) {
	case string:
		return `"type": "string"`
	case bool:
		return `"type": "boolean"`
	case int64:
		return `"type": "integer"`
	case float64:
		return `"type": "number"`
	case []any:
		return `"type": "array"`
	case map[string]any:
		return `"type": "object"`
	default:
		return ""
	}
}

// show writes a value as JSON.
func show(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}
